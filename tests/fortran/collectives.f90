! Collectives: every family in its blocking, non-blocking and persistent form, MPI_IN_PLACE, pairs with their places, and
! counts that differ from rank to rank.
program collectives
  use mpi_f08
  implicit none
  integer :: rank, size, i, n, total
  integer, allocatable :: counts(:), starts(:), all_of(:), triangle(:), mine(:), packed(:)
  integer :: pair(2), best(2)
  double precision :: x(3), y(3)
  type(MPI_Request) :: requests(4)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  total = size * (size + 1) / 2
  ! Rank i has i + 1 elements.
  allocate (counts(size), starts(size), all_of(size), triangle(total), mine(rank + 1), packed(size))
  counts = [(i, i = 1, size)]
  starts = [(i * (i - 1) / 2, i = 1, size)]
  mine = rank

  ! from one, to one
  x = 0
  if (rank == size - 1) x = [1d0, 2d0, 3d0]
  call MPI_Bcast(x, 3, MPI_DOUBLE_PRECISION, size - 1, MPI_COMM_WORLD)
  call check(all(x == [1d0, 2d0, 3d0]), 'MPI_Bcast')
  call MPI_Gather(rank, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (rank == 0) call check(all(all_of == [(i, i = 0, size - 1)]), 'MPI_Gather')
  all_of = all_of * 2
  call MPI_Scatter(all_of, 1, MPI_INTEGER, n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call check(n == 2 * rank, 'MPI_Scatter')
  triangle = -1
  call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, triangle, counts, starts, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (rank == 0) call check(is_triangle(1), 'MPI_Gatherv')
  triangle = triangle * 3
  call MPI_Scatterv(triangle, counts, starts, MPI_INTEGER, mine, rank + 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call check(all(mine == 3 * rank), 'MPI_Scatterv')

  ! to all
  mine = rank
  triangle = -1
  call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, triangle, counts, starts, MPI_INTEGER, MPI_COMM_WORLD)
  call check(is_triangle(1), 'MPI_Allgatherv')
  all_of = -1
  all_of(rank + 1) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD)
  call check(all(all_of == [(i, i = 0, size - 1)]), 'MPI_Allgather in place')
  all_of = [(rank * 100 + i, i = 0, size - 1)]
  call MPI_Alltoall(all_of, 1, MPI_INTEGER, packed, 1, MPI_INTEGER, MPI_COMM_WORLD)
  call check(all(packed == [(i * 100 + rank, i = 0, size - 1)]), 'MPI_Alltoall')
  ! I send one element to rank 0, two to rank 1, …, and get rank + 1 from each.
  call by_triangles()

  ! reductions
  call MPI_Allreduce(rank, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(n == total - size, 'MPI_Allreduce')
  pair = [-abs(rank - size / 2), rank]
  call MPI_Allreduce(pair, best, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD)
  call check(all(best == [0, size / 2]), 'MPI_MAXLOC')
  x = rank + 1
  call MPI_Reduce(x, y, 3, MPI_DOUBLE_PRECISION, MPI_PROD, 0, MPI_COMM_WORLD)
  if (rank == 0) call check(all(abs(y - gamma(size + 1d0)) < 1d-9 * y), 'MPI_Reduce')
  call MPI_Scan(1, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(n == rank + 1, 'MPI_Scan')
  n = 0
  call MPI_Exscan(1, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(n == rank, 'MPI_Exscan')
  all_of = rank
  call MPI_Reduce_scatter_block(all_of, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(n == total - size, 'MPI_Reduce_scatter_block')
  triangle = 1
  call MPI_Reduce_scatter(triangle, mine, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(all(mine == size), 'MPI_Reduce_scatter')
  call check_logical()

  ! several at once, completed in another order
  x = rank
  n = rank
  packed = -1
  if (rank == 0) all_of = [(7 * i, i = 0, size - 1)]
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1))
  call MPI_Iallreduce(MPI_IN_PLACE, x, 3, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, requests(2))
  call MPI_Iallgather(n, 1, MPI_INTEGER, packed, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(3))
  call MPI_Ibcast(all_of, size, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(4))
  do i = 4, 1, -1
    call MPI_Wait(requests(i), MPI_STATUS_IGNORE)
  end do
  call check(all(x == size - 1), 'MPI_Iallreduce')
  call check(all(packed == [(i, i = 0, size - 1)]), 'MPI_Iallgather')
  call check(all(all_of == [(7 * i, i = 0, size - 1)]), 'MPI_Ibcast')
  call repeated()
  if (rank == 0) print '(a)', 'test passed'
  call MPI_Finalize()
contains
  logical function is_triangle(factor)
    integer, intent(in) :: factor
    is_triangle = .true.
    do i = 1, size
      is_triangle = is_triangle .and. all(triangle(starts(i) + 1:starts(i) + i) == factor * (i - 1))
    end do
  end function

  subroutine by_triangles()
    integer :: theirs(size * (rank + 1)), equal(size), places(size)
    do i = 1, size
      triangle(starts(i) + 1:starts(i) + i) = rank * 100 + i - 1
    end do
    equal = rank + 1
    places = [((i - 1) * (rank + 1), i = 1, size)]
    theirs = -1
    call MPI_Alltoallv(triangle, counts, starts, MPI_INTEGER, theirs, equal, places, MPI_INTEGER, MPI_COMM_WORLD)
    do i = 1, size
      call check(all(theirs(places(i) + 1:places(i) + rank + 1) == (i - 1) * 100 + rank), 'MPI_Alltoallv')
    end do
  end subroutine

  subroutine check_logical()
    logical :: mine_true, all_true, one_true
    mine_true = rank == 0
    call MPI_Allreduce(mine_true, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
    call MPI_Allreduce(mine_true, one_true, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD)
    call check((all_true .eqv. size == 1) .and. one_true, 'MPI_LOGICAL')
  end subroutine

  subroutine repeated()
    type(MPI_Request) :: sum_of, barrier
    integer, asynchronous :: addend, result
    integer :: round
    call MPI_Allreduce_init(addend, result, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, sum_of)
    call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, barrier)
    do round = 1, 3
      addend = round * (rank + 1)
      call MPI_Start(sum_of)
      call MPI_Wait(sum_of, MPI_STATUS_IGNORE)
      call check(result == round * total, 'MPI_Allreduce_init')
      call MPI_Start(barrier)
      call MPI_Wait(barrier, MPI_STATUS_IGNORE)
    end do
    call MPI_Request_free(sum_of)
    call MPI_Request_free(barrier)
  end subroutine

  include 'check.inc'
end program
