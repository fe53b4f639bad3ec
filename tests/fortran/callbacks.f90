! Procedures of the application: attributes, operations, error handlers, generalized requests.
module procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copies = 0, deletions = 0, errors = 0, queries = 0, frees = 0, cancels = 0
contains
  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldcomm /= MPI_COMM_WORLD .or. comm_keyval == MPI_KEYVAL_INVALID) error stop 'arguments of the copy function'
    attribute_val_out = attribute_val_in + extra_state
    copies = copies + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (extra_state /= 1000 .or. comm_keyval == 0 .or. comm == MPI_COMM_NULL) error stop 'arguments of the delete function'
    if (attribute_val /= 7 .and. attribute_val /= 1007) error stop 'the value of the attribute'
    deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine longest(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) error stop 'the datatype of the operation'
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    where (abs(a) > abs(b)) b = a
  end subroutine
  subroutine longest_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer :: few
    few = int(len)
    call longest(invec, inoutvec, few, datatype)
  end subroutine
  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (comm /= MPI_COMM_SELF .or. class /= MPI_ERR_RANK) error stop 'arguments of the error handler'
    errors = errors + 1
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 3
    status%MPI_TAG = 4
    queries = queries + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    if (extra_state /= 11) error stop 'the extra state of a request'
    frees = frees + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (complete .or. extra_state /= 11) error stop 'a request that is not complete'
    cancels = cancels + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program callbacks
  use procedures
  implicit none
  integer :: rank, size, keyval, plain, values(2), code, n
  integer(MPI_ADDRESS_KIND) :: value
  integer, pointer :: nothing
  logical :: flag
  type(MPI_Comm) :: comm
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: errhandler, before
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  nullify(nothing)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)

  call MPI_Comm_create_keyval(copy, delete, keyval, 1000_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 7_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  if (.not. flag .or. value /= 1007 .or. copies /= 1) error stop 'a copied attribute'
  call MPI_Comm_free(comm)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval)
  if (deletions /= 2) error stop 'attributes that went'
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag)
  if (flag) error stop 'an attribute that is not there'
  call MPI_Comm_free_keyval(keyval)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, plain, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, plain, -5_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, plain, value, flag)
  if (.not. flag .or. value /= -5) error stop 'MPI_COMM_DUP_FN'
  call MPI_Comm_free(comm)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  if (.not. flag .or. value < 32767) error stop 'MPI_TAG_UB'

  call MPI_Op_create(longest, .true., op)
  call MPI_Allreduce([rank, -rank - 1], values, 2, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (any(values /= [size - 1, -size])) error stop 'an operation of the application'
  call MPI_Op_commutative(op, flag)
  if (.not. flag) error stop 'an operation that commutes'
  call MPI_Op_free(op)
  if (op /= MPI_OP_NULL) error stop 'an operation that was freed'
  call MPI_Op_create_c(longest_c, .true., op)
  call MPI_Allreduce([rank, -rank - 1], values, 2_MPI_COUNT_KIND, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (any(values /= [size - 1, -size])) error stop 'an operation with large counts'
  call MPI_Op_free(op)

  call MPI_Comm_get_errhandler(MPI_COMM_SELF, before)
  call MPI_Comm_create_errhandler(handler, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler)
  call MPI_Send(1, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF, code)
  if (errors /= 1 .or. code == MPI_SUCCESS) error stop 'an error handler of the application'
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, before)
  call MPI_Errhandler_free(errhandler)

  call MPI_Grequest_start(query, release, cancel, 11_MPI_ADDRESS_KIND, request)
  call MPI_Cancel(request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  if (n /= 11 .or. status%MPI_SOURCE /= 3 .or. status%MPI_TAG /= 4) error stop 'the status of a generalized request'
  if (queries /= 1 .or. frees /= 1 .or. cancels /= 1) error stop 'the calls of a generalized request'
  call MPI_Finalize()
end program
