! One-sided: memory by C pointers, displacements of MPI_ADDRESS_KIND, all three synchronisations, accumulates, attributes.
program onesided
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated
  implicit none
  integer :: rank, size, right, left, i, old, unit, class, code, n
  integer, pointer :: cells(:), theirs(:)
  integer :: origin(4), result(4)
  integer(MPI_ADDRESS_KIND) :: bytes, value
  type(c_ptr) :: base
  type(MPI_Win) :: window, shared
  type(MPI_Comm) :: host
  type(MPI_Group) :: all_ranks, next, previous
  type(MPI_Request) :: request
  character(len=MPI_MAX_OBJECT_NAME) :: name
  logical :: flag
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)
  bytes = 4 * 8
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, window)
  call c_f_pointer(base, cells, [8])
  cells = 0
  call MPI_Win_set_name(window, 'cells')
  call MPI_Win_get_name(window, name, n)
  call check(name == 'cells' .and. n == 5, 'the name of a window')
  call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag)
  call check(flag .and. value == bytes, 'MPI_WIN_SIZE')

  ! fence
  origin = [(rank * 10 + i, i = 1, 4)]
  call MPI_Win_fence(0, window)
  call MPI_Put(origin, 4, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, window)
  call MPI_Win_fence(0, window)
  call check(all(cells(1:4) == [(left * 10 + i, i = 1, 4)]), 'what was put')
  call MPI_Get(result, 4, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, window)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, window)
  call check(all(result == origin), 'what was got')

  ! post, start, complete, wait
  call MPI_Comm_group(MPI_COMM_WORLD, all_ranks)
  call MPI_Group_incl(all_ranks, 1, [right], next)
  call MPI_Group_incl(all_ranks, 1, [left], previous)
  call MPI_Win_post(previous, 0, window)
  call MPI_Win_start(next, 0, window)
  call MPI_Accumulate(origin, 4, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, MPI_SUM, window)
  call MPI_Win_complete(window)
  call MPI_Win_wait(window)
  call check(all(cells(1:4) == [(2 * (left * 10 + i), i = 1, 4)]), 'what was added')

  ! locks, atomics, requests
  call MPI_Win_lock_all(0, window)
  call MPI_Fetch_and_op(1, old, MPI_INTEGER, 0, 6_MPI_ADDRESS_KIND, MPI_SUM, window)
  call MPI_Win_flush(0, window)
  call check(old >= 0 .and. old < size, 'MPI_Fetch_and_op')
  call MPI_Compare_and_swap(rank + 1, 0, old, MPI_INTEGER, right, 7_MPI_ADDRESS_KIND, window)
  call MPI_Win_flush(right, window)
  call check(old == 0, 'MPI_Compare_and_swap')
  call MPI_Rget(result, 1, MPI_INTEGER, right, 7_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(result(1) == rank + 1, 'MPI_Rget')
  call MPI_Win_unlock_all(window)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) call check(cells(7) == size, 'a counter')

  ! an error that returns
  call MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN)
  call MPI_Win_unlock(right, window, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_RMA_SYNC, 'an unlock without a lock')
  call MPI_Group_free(all_ranks)
  call MPI_Group_free(next)
  call MPI_Group_free(previous)
  call MPI_Win_free(window)
  call check(window == MPI_WIN_NULL, 'a freed window')

  ! memory that ranks of a host share
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, host)
  call MPI_Comm_rank(host, i)
  call MPI_Comm_size(host, n)
  bytes = 4
  call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, host, base, shared)
  call c_f_pointer(base, cells, [1])
  call MPI_Win_lock_all(0, shared)
  cells(1) = 100 + i
  call MPI_Win_sync(shared)
  call MPI_Barrier(host)
  call MPI_Win_sync(shared)
  call MPI_Win_shared_query(shared, mod(i + 1, n), bytes, unit, base)
  call check(bytes == 4 .and. unit == 4 .and. c_associated(base), 'MPI_Win_shared_query')
  call c_f_pointer(base, theirs, [1])
  call check(theirs(1) == 100 + mod(i + 1, n), 'the memory of a neighbour')
  call MPI_Win_unlock_all(shared)
  call MPI_Win_free(shared)
  call MPI_Comm_free(host)
  if (rank == 0) print '(a)', 'test passed'
  call MPI_Finalize()
contains
  include 'check.inc'
end program
