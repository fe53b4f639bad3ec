! Types of handles and of the status in module mpi: those of mpi_f08, for programs that use both (MPI 5.0 section 19.1.3); and what
! mpi_f08 has that only its interface tells: attributes of the interfaces, and the operations of MPI-1 with handles of INTEGER.
program named_types
  use mpi
  implicit none
  integer :: rank, ierror, i, status(MPI_STATUS_SIZE)
  type(MPI_Comm) :: named, same
  type(MPI_Status) :: named_status
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  named = MPI_Comm(MPI_COMM_WORLD)
  same%MPI_VAL = MPI_COMM_SELF
  call check(named /= same .and. .not. named == same .and. named == MPI_Comm(MPI_COMM_WORLD), 'handles that have a type')
  call check(MPI_Datatype(MPI_INTEGER) /= MPI_Datatype(MPI_REAL), 'datatypes that have a type')
  status = [(10 * i, i = 1, MPI_STATUS_SIZE)]
  call MPI_Status_f2f08(status, named_status, ierror)
  call check(named_status%MPI_SOURCE == status(MPI_SOURCE) .and. named_status%MPI_TAG == status(MPI_TAG), 'MPI_Status_f2f08')
  named_status%MPI_ERROR = 7
  status = 0
  call PMPI_Status_f082f(named_status, status, ierror)
  call check(status(MPI_ERROR) == 7 .and. status(MPI_TAG) == 10 * MPI_TAG, 'MPI_Status_f082f')
  call check(status(MPI_STATUS_SIZE) == 10 * MPI_STATUS_SIZE, 'all of a status')
  call of_mpi_f08(named)
  call constant_request(rank)
  call PMPI_F_sync_reg(rank)
  call MPI_Finalize(ierror)
contains
  include 'check.inc'
end program

! The type of module mpi is that of mpi_f08.
subroutine of_mpi_f08(comm)
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_associated, c_null_ptr
  implicit none
  type(MPI_Comm) :: comm
  type(c_ptr) :: place
  integer :: number, size, n, code, class
  type(MPI_Status) :: status
  character(len=MPI_MAX_ERROR_STRING) :: text
  integer :: a(4), ones(4)
  type(MPI_Datatype) :: types(4)
  call MPI_Comm_rank(comm, number)
  call MPI_Comm_size(comm, size)
  if (number >= size) error stop 'a handle from module mpi'
  call MPI_Status_set_error(err=MPI_ERR_TAG, status=status)
  call MPI_Status_get_error(err=n, status=status)
  if (n /= MPI_ERR_TAG) error stop 'the argument `err`'
  call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
  place = c_null_ptr
  call MPI_Buffer_detach(place, n)
  if (.not. c_associated(place, c_loc(MPI_BUFFER_AUTOMATIC))) error stop 'C_LOC(MPI_BUFFER_AUTOMATIC)'
  ! An error of what is asked for is one, and is that of the operation.
  ones = 1
  types = MPI_INTEGER
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Alltoallw(a, ones, ones, types, a, ones, ones, types, MPI_COMM_NULL, code)
  call MPI_Error_class(code, class)
  call MPI_Error_string(code, text, n)
  if (class /= MPI_ERR_COMM .or. index(text, '`comm`') == 0) error stop 'MPI_Alltoallw without a communicator'
end subroutine

! One that may not be written to is cancelled all the same.
subroutine constant_request(rank)
  use mpi_f08
  implicit none
  integer :: rank, never
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  logical :: flag
  call MPI_Irecv(never, 1, MPI_INTEGER, rank, 123, MPI_COMM_WORLD, request)
  call withdraw(request)
  call MPI_Wait(request, status)
  call MPI_Test_cancelled(status, flag)
  if (.not. flag) error stop 'MPI_Cancel'
contains
  subroutine withdraw(constant)
    type(MPI_Request), intent(in) :: constant
    call MPI_Cancel(constant)
  end subroutine
end subroutine
