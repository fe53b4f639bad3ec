! Fortran with C beside it: beside_c.c.
program beside_c
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function which_f08_status(status) bind(C)
      import
      type(MPI_Status), intent(in) :: status(*)
    end function
    integer(c_int) function sends_heard() bind(C)
      import
    end function
  end interface
  integer :: rank, around, value(10), got(10)
  type(MPI_Request) :: request
  type(MPI_Status) :: statuses(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)

  ! As a library in C gets them from Fortran.
  call check(one(MPI_STATUS_IGNORE) == 1, 'MPI_STATUS_IGNORE of mpi_f08')
  call check(which_f08_status(MPI_STATUSES_IGNORE) == 2, 'MPI_STATUSES_IGNORE of mpi_f08')
  call check(which_f08_status(statuses) == 0, 'statuses of mpi_f08')
  call with_include_file()

  ! A buffer goes through the tool as it is, a section too.
  value = rank + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  got = 0
  call MPI_Irecv(got, 5, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, request)
  call MPI_Send(value(1:10:2), 5, MPI_INTEGER, rank, 3, MPI_COMM_WORLD)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(all(got(1:5) == value(1:10:2)), 'what was sent through a tool')
  call MPI_Send(value, 0, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD, around)
  call check(sends_heard() == 2 .and. around == MPI_SUCCESS, 'what the tool has heard')
  call PMPI_Send(value, 0, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD)
  call check(sends_heard() == 2, 'what goes past the tool')
  call MPI_Finalize()
contains
  integer function one(status)
    type(MPI_Status), intent(in), target :: status
    interface
      integer(c_int) function which(status) bind(C, name='which_f08_status')
        import
        type(MPI_Status), intent(in) :: status
      end function
    end interface
    one = which(status)
  end function

  include 'check.inc'
end program

! The names of mpif.h, which are those of the module mpi as well.
subroutine with_include_file()
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  interface
    integer(c_int) function which_status(status) bind(C)
      import
      integer, intent(in) :: status(*)
    end function
  end interface
  integer :: status(MPI_STATUS_SIZE)
  if (which_status(MPI_STATUS_IGNORE) /= 1) error stop 'MPI_STATUS_IGNORE of mpif.h'
  if (which_status(MPI_STATUSES_IGNORE) /= 2) error stop 'MPI_STATUSES_IGNORE of mpif.h'
  if (which_status(status) /= 0) error stop 'a status of mpif.h'
end subroutine
