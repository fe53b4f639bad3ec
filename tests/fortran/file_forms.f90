! All ways to read and to write files: with `mpi_f08` in both widths, and with module `mpi`.
module f08
  use mpi_f08
  implicit none
  integer, parameter :: K = kind(0), O = MPI_OFFSET_KIND
  integer :: rank, size, number, handled, i, ierror
  integer, asynchronous :: a(6), b(6)
  integer(K) :: count
  character(len=80) :: name
  type(MPI_File) :: file
  type(MPI_Datatype) :: pair, etype, filetype
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Group) :: group
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler
contains
  subroutine on_error(which, code)
    type(MPI_File) :: which
    integer :: code
    if (which == MPI_FILE_NULL .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  include 'file_forms.inc'
end module

module f08_large
  use mpi_f08
  implicit none
  integer, parameter :: K = MPI_COUNT_KIND, O = MPI_OFFSET_KIND
  integer :: rank, size, number, handled, i, ierror
  integer, asynchronous :: a(6), b(6)
  integer(K) :: count
  character(len=80) :: name
  type(MPI_File) :: file
  type(MPI_Datatype) :: pair, etype, filetype
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Group) :: group
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler
contains
  subroutine on_error(which, code)
    type(MPI_File) :: which
    integer :: code
    if (which == MPI_FILE_NULL .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  include 'file_forms.inc'
end module

module f90
  use mpi
  implicit none
  integer, parameter :: K = kind(0), O = MPI_OFFSET_KIND
  integer :: rank, size, number, handled, i, ierror
  integer, asynchronous :: a(6), b(6)
  integer(K) :: count
  character(len=80) :: name
  integer :: file, pair, etype, filetype, request, status(MPI_STATUS_SIZE), group, info, handler
contains
  subroutine on_error(which, code)
    integer :: which, code
    if (which == MPI_FILE_NULL .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  include 'file_forms.inc'
end module

program file_forms
  use mpi_f08, only: MPI_Init, MPI_Finalize
  use f08, only: small => run
  use f08_large, only: large => run
  use f90, only: plain => run
  implicit none
  call MPI_Init()
  call small()
  call large()
  call plain()
  call MPI_Finalize()
end program
