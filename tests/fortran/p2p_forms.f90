! All ways to send, to receive and to ask for the end: with `mpi_f08` in both widths, and with module `mpi`.
module f08
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_associated
  implicit none
  integer, parameter :: K = kind(0), space_bytes = 5000
  include 'p2p_forms_f08.inc'
contains
  include 'p2p_forms_own.inc'
  include 'p2p_forms.inc'
end module

module f08_large
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_associated
  implicit none
  integer, parameter :: K = MPI_COUNT_KIND, space_bytes = 5000
  include 'p2p_forms_f08.inc'
contains
  include 'p2p_forms_own.inc'
  include 'p2p_forms.inc'
end module

module f90
  use mpi
  implicit none
  integer, parameter :: K = kind(0), space_bytes = 5000
  integer :: rank, size, right, left, i, index, many, number, indices(5), ierror
  integer, asynchronous :: a(8), b(8), space(space_bytes / 4)
  integer(K) :: count
  integer(MPI_COUNT_KIND) :: large
  logical :: flag
  integer :: address(2) = [1, 2]
  integer :: request, other, requests(5), lasting(2), pair, comm, session, message
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 5)
contains
  subroutine pick(which)
    integer, intent(in) :: which
    status = statuses(:, which)
  end subroutine
  ! Module mpi cannot tell the address: nothing is written.
  logical function is_space()
    is_space = all(address == [1, 2])
  end function
  logical function is_automatic()
    is_automatic = is_space()
  end function
  include 'p2p_forms.inc'
end module

program p2p_forms
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
