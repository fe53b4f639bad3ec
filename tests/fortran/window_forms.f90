! One-sided communication: with `mpi_f08` in both widths, and with module `mpi`.
module f08
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated
  implicit none
  integer, parameter :: K = kind(0), U = kind(0), D = MPI_ADDRESS_KIND
  integer :: rank, size, right, left, handled, i, ierror
  integer, asynchronous :: a(10), b(10), c(10), cells(10)
  type(MPI_Win) :: window
  type(MPI_Datatype) :: pair
  type(MPI_Request) :: request
  type(MPI_Group) :: group
  type(MPI_Comm) :: comm
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler
  type(c_ptr) :: base
contains
  include 'window_forms_own.inc'
  include 'window_forms.inc'
end module

module f08_large
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated
  implicit none
  integer, parameter :: K = MPI_COUNT_KIND, U = MPI_ADDRESS_KIND, D = MPI_ADDRESS_KIND
  integer :: rank, size, right, left, handled, i, ierror
  integer, asynchronous :: a(10), b(10), c(10), cells(10)
  type(MPI_Win) :: window
  type(MPI_Datatype) :: pair
  type(MPI_Request) :: request
  type(MPI_Group) :: group
  type(MPI_Comm) :: comm
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler
  type(c_ptr) :: base
contains
  include 'window_forms_own.inc'
  include 'window_forms.inc'
end module

module f90
  use mpi
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer, parameter :: K = kind(0), U = kind(0), D = MPI_ADDRESS_KIND
  integer :: rank, size, right, left, handled, i, ierror
  integer, asynchronous :: a(10), b(10), c(10), cells(10)
  integer :: window, pair, request, group, comm, info, handler
  integer(MPI_ADDRESS_KIND) :: base
contains
  subroutine on_error(which, code)
    integer :: which, code
    if (which == window .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  logical function is_memory()
    is_memory = base /= 0
  end function
  ! The memory is named as what it is used as; the address may come as a pointer of C, too.
  subroutine give_back()
    integer, pointer :: memory(:)
    type(c_ptr) :: place
    call MPI_Alloc_mem(40_D, MPI_INFO_NULL, place, ierror)
    call c_f_pointer(place, memory, [10])
    memory = 5
    call MPI_Free_mem(memory, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_Free_mem of a pointer')
    call MPI_Win_allocate(40_D, 4, MPI_INFO_NULL, MPI_COMM_WORLD, place, window, ierror)
    call c_f_pointer(place, memory, [10])
    memory = 6
    call MPI_Win_free(window, ierror)
    call MPI_Win_allocate_shared(40_D, 4, MPI_INFO_NULL, MPI_COMM_SELF, place, window, ierror)
    call c_f_pointer(place, memory, [10])
    memory = 7
    call MPI_Win_shared_query(window, 0, base, i, place, ierror)
    call c_f_pointer(place, memory, [10])
    call check(base == 40 .and. i == 4 .and. memory(10) == 7, 'MPI_Win_shared_query with a pointer')
    call MPI_Win_free(window, ierror)
  end subroutine
  include 'window_forms.inc'
end module

program window_forms
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
