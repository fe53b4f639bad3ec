! Module mpi_f08, module mpi and mpif.h in one program: the addresses that stand for something are the same in all three.
subroutine by_module(n)
  use mpi
  implicit none
  integer :: n, ierror, status(MPI_STATUS_SIZE)
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, status, ierror)
  if (status(MPI_SOURCE) /= MPI_PROC_NULL) error stop 'the status of MPI_PROC_NULL'
end subroutine

subroutine by_include(n)
  implicit none
  include 'mpif.h'
  integer :: n, ierror
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
end subroutine

program together
  use mpi_f08
  implicit none
  integer :: n, size, f_status(MPI_STATUS_SIZE)
  type(MPI_Request), allocatable :: requests(:)
  type(MPI_Status) :: status
  external :: by_module, by_include
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  allocate (requests(3))
  requests = MPI_REQUEST_NULL
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
  n = 1
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call by_module(n)
  call by_include(n)
  call PMPI_Barrier(MPI_COMM_WORLD)
  if (n /= size ** 3) error stop 'MPI_IN_PLACE of all three'
  call MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, status)
  call MPI_Status_f082f(status, f_status)
  if (f_status(MPI_SOURCE) /= MPI_PROC_NULL) error stop 'MPI_Status_f082f'
  f_status(MPI_TAG) = 12
  call MPI_Status_f2f08(f_status, status)
  if (status%MPI_TAG /= 12) error stop 'MPI_Status_f2f08'
  call MPI_Finalize()
end program
