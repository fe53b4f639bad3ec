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
    integer(c_int) function has_value(comm, keyval, number) bind(C)
      import
      integer(c_int), value :: comm, keyval
      integer(MPI_ADDRESS_KIND), value :: number
    end function
    integer(MPI_ADDRESS_KIND) function set_address(comm, keyval) bind(C)
      import
      integer(c_int), value :: comm, keyval
    end function
    integer(c_int) function keyval_of_c() bind(C)
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
  call attributes(keyval_of_c())
  call MPI_Comm_create_keyval(copy_more, MPI_COMM_NULL_DELETE_FN, around, 0_MPI_ADDRESS_KIND)
  call attributes(around)
  call MPI_Finalize()
contains
  subroutine attributes(keyval)
    integer, intent(in) :: keyval
    integer(MPI_ADDRESS_KIND) :: number, got
    integer :: at
    logical :: flag
    type(MPI_Comm) :: copy
    ! More than are kept at first, some of them again, large ones and small ones.
    do at = 1, 300
      number = (mod(at, 200) - 100) * 123456789012_MPI_ADDRESS_KIND
      call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, number)
      call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, got, flag)
      call check(flag .and. got == number, 'an attribute of Fortran')
      call check(has_value(MPI_COMM_SELF%MPI_VAL, keyval, number) == 1, 'an attribute of Fortran in C')
    end do
    call MPI_Comm_dup(MPI_COMM_SELF, copy)
    call MPI_Comm_get_attr(copy, keyval, got, flag)
    if (keyval == around) number = number + 2
    call check(flag .and. got == number, 'a copy of an attribute of Fortran')
    call check(has_value(copy%MPI_VAL, keyval, number) == 1, 'a copy of an attribute of Fortran in C')
    call MPI_Comm_free(copy)
    number = set_address(MPI_COMM_SELF%MPI_VAL, keyval)
    call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, got, flag)
    call check(flag .and. got == number, 'an attribute of C')
  end subroutine

  subroutine copy_more(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = attribute_val_in + 2
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

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
