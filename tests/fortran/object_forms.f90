! Objects: with `mpi_f08`, and with module `mpi`.
module f08
  use mpi_f08
  implicit none
  integer :: rank, size, number, other, handled, copies, deletions, frees, ierror
  logical :: flag
  type(MPI_Comm) :: comm, third, inter
  type(MPI_Group) :: world, group, rest, made
  type(MPI_Info) :: info, asked
  type(MPI_Request) :: request
  type(MPI_Datatype) :: type, twin
  type(MPI_Errhandler) :: handler
  type(MPI_Session) :: session
  type(MPI_Status) :: status
contains
  integer function number_of_self()
    number_of_self = MPI_COMM_SELF%MPI_VAL
  end function
  integer function number_of(which)
    type(MPI_Comm), intent(in) :: which
    number_of = which%MPI_VAL
  end function
  subroutine on_error(which, code)
    type(MPI_Comm) :: which
    integer :: code
    if (which == comm .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  subroutine on_session_error(which, code)
    type(MPI_Session) :: which
    integer :: code
    if (which == session .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  subroutine copy_comm(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldcomm == comm .and. comm_keyval /= MPI_KEYVAL_INVALID) copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, attribute_val_in < 0)
  end subroutine
  subroutine delete_comm(oldcomm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (oldcomm /= MPI_COMM_NULL .and. (attribute_val == 5 .or. attribute_val == extra_state + 5)) deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine copy_type(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldtype == type .and. type_keyval /= MPI_KEYVAL_INVALID) copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_type(datatype, type_keyval, attribute_val, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer :: type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (attribute_val == merge(5_MPI_ADDRESS_KIND, extra_state + 5, datatype == type)) deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state - 4000000000_MPI_ADDRESS_KIND), ierror)
    call MPI_Status_set_cancelled(status, .true., ierror)
  end subroutine
  include 'object_forms.inc'
end module

module f90
  use mpi
  implicit none
  integer :: rank, size, number, other, handled, copies, deletions, frees, ierror
  logical :: flag
  integer :: comm, third, inter, world, group, rest, made, info, asked, request, type, twin, handler, session
  integer :: status(MPI_STATUS_SIZE)
contains
  integer function number_of_self()
    number_of_self = MPI_COMM_SELF
  end function
  integer function number_of(which)
    integer, intent(in) :: which
    number_of = which
  end function
  subroutine on_error(which, code)
    integer :: which, code
    if (which == comm .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  subroutine on_session_error(which, code)
    integer :: which, code
    if (which == session .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
  subroutine copy_comm(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    integer :: oldcomm, comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldcomm == comm .and. comm_keyval /= MPI_KEYVAL_INVALID) copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, attribute_val_in < 0)
  end subroutine
  subroutine delete_comm(oldcomm, comm_keyval, attribute_val, extra_state, ierror)
    integer :: oldcomm, comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (oldcomm /= MPI_COMM_NULL .and. (attribute_val == 5 .or. attribute_val == extra_state + 5)) deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine copy_type(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    integer :: oldtype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldtype == type .and. type_keyval /= MPI_KEYVAL_INVALID) copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_type(datatype, type_keyval, attribute_val, extra_state, ierror)
    integer :: datatype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (attribute_val == merge(5_MPI_ADDRESS_KIND, extra_state + 5, datatype == type)) deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state - 4000000000_MPI_ADDRESS_KIND), ierror)
    call MPI_Status_set_cancelled(status, .true., ierror)
  end subroutine
  include 'object_forms.inc'
end module

program object_forms
  use mpi_f08, only: MPI_Init_thread, MPI_Finalize, MPI_Finalized, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE
  use f08, only: both => run
  use f90, only: plain => run
  implicit none
  integer :: provided
  logical :: flag
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided)
  if (provided < MPI_THREAD_SERIALIZED .or. provided > MPI_THREAD_MULTIPLE) error stop 'MPI_Init_thread'
  call both()
  call plain()
  call MPI_Finalize()
  call MPI_Finalized(flag)
  if (.not. flag) error stop 'MPI_Finalized'
end program
