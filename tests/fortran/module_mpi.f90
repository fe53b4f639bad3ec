! Module mpi: integers for handles, arrays for statuses, choice buffers of any type and rank.
program module_mpi
  use mpi
  implicit none
  integer :: rank, size, ierror, status(MPI_STATUS_SIZE), requests(2), statuses(MPI_STATUS_SIZE, 2), n, class, keyval
  integer :: comm, newtype, op, i, index
  double precision :: grid(3, 4), one, before
  complex :: z(2)
  logical :: flag
  character(len=8) :: word
  integer(MPI_ADDRESS_KIND) :: value, base
  external :: add
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  before = MPI_Wtime()
  if (MPI_Wtick() <= 0 .or. MPI_Wtime() < before) error stop 'the clock'

  grid = rank
  one = 1
  call MPI_Irecv(grid, 12, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Isend(reshape([(i * 1d0, i = 1, 12)], [12]), 12, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitall(2, requests, statuses, ierror)
  call MPI_Get_count(statuses(:, 1), MPI_DOUBLE_PRECISION, n, ierror)
  if (n /= 12 .or. statuses(MPI_TAG, 1) /= 1 .or. grid(3, 4) /= 12) error stop 'MPI_Waitall'
  if (requests(1) /= MPI_REQUEST_NULL) error stop 'a complete request'
  call MPI_Allreduce(one, grid(2, 2), 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (grid(2, 2) /= size) error stop 'a scalar and an element'
  call MPI_Allreduce(MPI_IN_PLACE, one, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (one /= size) error stop 'MPI_IN_PLACE'
  z = (1, 2)
  call MPI_Allreduce(MPI_IN_PLACE, z, 2, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (any(z /= size * (1, 2))) error stop 'complex numbers'
  flag = rank == 0
  call MPI_Allreduce(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
  if (flag .neqv. size == 1) error stop 'LOGICALs'
  word = 'nothing'
  if (rank == 0) word = 'greeting'
  call MPI_Bcast(word, 8, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  if (word /= 'greeting') error stop 'characters'
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 2, n, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  if (n /= rank) error stop 'MPI_STATUS_IGNORE'
  call MPI_Op_create(add, .true., op, ierror)
  call MPI_Allreduce(rank + 1, n, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  if (n /= size * (size + 1) / 2) error stop 'an operation of the application'
  call MPI_Op_free(op, ierror)

  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, comm, ierror)
  call MPI_Comm_free(comm, ierror)
  if (comm /= MPI_COMM_NULL) error stop 'a communicator that was freed'
  call MPI_Type_vector(2, 1, 3, MPI_INTEGER, newtype, ierror)
  call MPI_Type_commit(newtype, ierror)
  call MPI_Type_free(newtype, ierror)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 3_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 99_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
  if (.not. flag .or. value /= 99) error stop 'an attribute'
  call MPI_Comm_free(comm, ierror)
  call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 3, ierror)
  call MPI_Attr_put(MPI_COMM_WORLD, keyval, -7, ierror)
  call MPI_Attr_get(MPI_COMM_WORLD, keyval, n, flag, ierror)
  if (.not. flag .or. n /= -7) error stop 'an attribute of MPI-1'
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, n, flag, ierror)
  if (.not. flag .or. n < 32767) error stop 'MPI_TAG_UB'
  call MPI_Alloc_mem(100_MPI_ADDRESS_KIND, MPI_INFO_NULL, base, ierror)
  if (base == 0 .or. ierror /= MPI_SUCCESS) error stop 'MPI_Alloc_mem'

  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPI_Send(rank, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierror)
  call MPI_Error_class(ierror, class, ierror)
  if (class /= MPI_ERR_RANK) error stop 'a wrong rank'
  requests = MPI_REQUEST_NULL
  call MPI_Waitany(2, requests, index, status, ierror)
  if (index /= MPI_UNDEFINED) error stop 'no request'
  call MPI_Sizeof(grid, n, ierror)
  if (n /= 8) error stop 'MPI_Sizeof'
  call PMPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
end program

subroutine add(invec, inoutvec, len, datatype)
  use mpi
  implicit none
  integer :: len, datatype, invec(len), inoutvec(len)
  if (datatype /= MPI_INTEGER) error stop 'the datatype of the operation'
  inoutvec = inoutvec + invec
end subroutine
