! What C compares with to know that Fortran has handed on MPI_STATUS_IGNORE: variables of the library.
module variables_of_c
  use, intrinsic :: iso_c_binding
  implicit none
  type(c_ptr), bind(C, name='MPI_F_STATUS_IGNORE') :: single
  type(c_ptr), bind(C, name='MPI_F_STATUSES_IGNORE') :: several
end module

program ignored
  use variables_of_c
  implicit none
  include 'mpif.h'
  integer :: code
  integer, target :: status(MPI_STATUS_SIZE)
  call MPI_Init(code)
  if (.not. c_associated(single, place(MPI_STATUS_IGNORE))) error stop 'MPI_F_STATUS_IGNORE'
  if (.not. c_associated(several, place(MPI_STATUSES_IGNORE))) error stop 'MPI_F_STATUSES_IGNORE'
  if (c_associated(single, place(status)) .or. c_associated(several, place(status))) error stop 'a status'
  call MPI_Finalize(code)
contains
  type(c_ptr) function place(status)
    integer, target :: status(*)
    place = c_loc(status)
  end function
end program
