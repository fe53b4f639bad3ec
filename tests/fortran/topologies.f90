! Virtual topologies: grids with LOGICAL arguments, graphs, distributed graphs with weights, and exchanges with neighbours.
program topologies
  use mpi_f08
  implicit none
  integer :: rank, size, i, n, m, before, after, kind, code, class
  integer :: dims(2), coords(2), got_dims(2), got_coords(2)
  integer :: from(2), to(2), weights_in(2), weights_out(2), values(2), result(2)
  integer, allocatable :: index(:), edges(:)
  logical :: periods(2), got_periods(2), weighted
  type(MPI_Comm) :: grid, row, ring, cycle_of
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)

  ! grids
  dims = 0
  call MPI_Dims_create(size, 2, dims)
  call check(product(dims) == size .and. dims(1) >= dims(2), 'MPI_Dims_create')
  periods = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid)
  call MPI_Topo_test(grid, kind)
  call check(kind == MPI_CART, 'MPI_Topo_test')
  call MPI_Cartdim_get(grid, n)
  call check(n == 2, 'MPI_Cartdim_get')
  call MPI_Cart_get(grid, 2, got_dims, got_periods, got_coords)
  call MPI_Cart_coords(grid, rank, 2, coords)
  call check(all(got_dims == dims) .and. all(got_periods .eqv. periods) .and. all(got_coords == coords), 'MPI_Cart_get')
  call MPI_Cart_rank(grid, coords + [dims(1), 0], n)
  call check(n == rank, 'MPI_Cart_rank wraps')
  call MPI_Cart_shift(grid, 1, 1, before, after)
  call check((before == MPI_PROC_NULL) .eqv. (coords(2) == 0), 'MPI_Cart_shift at an edge')
  call MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, n)
  call check(n >= 0 .and. n < size, 'MPI_Cart_map')
  call MPI_Cart_sub(grid, [.false., .true.], row)
  call MPI_Comm_size(row, n)
  call check(n == dims(2), 'MPI_Cart_sub')
  call MPI_Comm_free(row)
  call MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN)
  call MPI_Cart_shift(grid, 2, 1, before, after, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_DIMS .or. class == MPI_ERR_ARG, 'a shift along the third of two dimensions')
  call MPI_Comm_free(grid)

  ! a graph: a ring, each rank with its two neighbours
  before = mod(rank + size - 1, size)
  after = mod(rank + 1, size)
  allocate (index(size), edges(2 * size))
  index = [(2 * i, i = 1, size)]
  edges = [(mod(i + size - 1, size), mod(i + 1, size), i = 0, size - 1)]
  call MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, .false., ring)
  call MPI_Graphdims_get(ring, n, m)
  call check(n == size .and. m == 2 * size, 'MPI_Graphdims_get')
  call MPI_Graph_neighbors_count(ring, rank, n)
  call MPI_Graph_neighbors(ring, rank, 2, to)
  call check(n == 2 .and. all(to == [before, after]), 'MPI_Graph_neighbors')
  values = [rank * 10, rank * 10 + 1]
  call MPI_Neighbor_allgather(values, 1, MPI_INTEGER, result, 1, MPI_INTEGER, ring)
  call check(all(result == [before * 10, after * 10]), 'MPI_Neighbor_allgather')
  call MPI_Comm_free(ring)

  ! a distributed graph of the same shape, named by one rank for all, with weights
  if (rank == 0) then
    call MPI_Dist_graph_create(MPI_COMM_WORLD, size, [(i, i = 0, size - 1)], [(1, i = 1, size)], &
                               [(mod(i + 1, size), i = 0, size - 1)], [(5 + i, i = 0, size - 1)], MPI_INFO_NULL, .false., cycle_of)
  else
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 0, to, to, to, to, MPI_INFO_NULL, .false., cycle_of)
  end if
  call MPI_Dist_graph_neighbors_count(cycle_of, n, m, weighted)
  call check(n == 1 .and. m == 1 .and. weighted, 'MPI_Dist_graph_neighbors_count')
  call MPI_Dist_graph_neighbors(cycle_of, 1, from, weights_in, 1, to, weights_out)
  call check(from(1) == before .and. weights_in(1) == 5 + before, 'whom I hear')
  call check(to(1) == after .and. weights_out(1) == 5 + rank, 'who hears me')
  call MPI_Ineighbor_alltoall(values, 1, MPI_INTEGER, result, 1, MPI_INTEGER, cycle_of, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(result(1) == before * 10, 'MPI_Ineighbor_alltoall')
  call MPI_Comm_free(cycle_of)

  ! without weights, each rank for itself
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [before], MPI_UNWEIGHTED, 1, [after], MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                      .false., cycle_of)
  call MPI_Dist_graph_neighbors_count(cycle_of, n, m, weighted)
  call check(n == 1 .and. m == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
  call MPI_Neighbor_alltoallv(values, [2], [0], MPI_INTEGER, result, [2], [0], MPI_INTEGER, cycle_of)
  call check(all(result == [before * 10, before * 10 + 1]), 'MPI_Neighbor_alltoallv')
  call MPI_Neighbor_allgather_init(values(2), 1, MPI_INTEGER, result, 1, MPI_INTEGER, cycle_of, MPI_INFO_NULL, request)
  do i = 1, 2
    values(2) = i + rank
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(result(1) == i + before, 'MPI_Neighbor_allgather_init')
  end do
  call MPI_Request_free(request)
  call MPI_Comm_free(cycle_of)
  if (rank == 0) print '(a)', 'test passed'
  call MPI_Finalize()
contains
  include 'check.inc'
end program
