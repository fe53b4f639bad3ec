! Heat spreads over a plate, in Fortran: the five-point Jacobi iteration on a two-dimensional grid of ranks. Halos travel by
! non-blocking messages from and into sections of the array itself, columns and rows alike; the residual by allreduce.
!
!   mpiexec -n 4 heat_fortran [width height steps]
!
! Every rank computes the whole plate serially as well and compares: the results are equal bit by bit, because every cell
! is computed by the same operations in the same order.
program heat
  use mpi_f08
  implicit none
  integer :: shape(3) = [320, 200, 1000], rank, size, dims(2), place(2), first(2), last(2), step, i, wrong, all_wrong
  integer :: below(2), above(2)
  character(len=20) :: word
  double precision, allocatable :: now(:, :), next(:, :), whole(:, :), whole_next(:, :)
  double precision :: begun, change, largest
  type(MPI_Comm) :: grid
  type(MPI_Request) :: requests(8)

  call MPI_Init()
  do i = 1, min(3, command_argument_count())
    call get_command_argument(i, word)
    read (word, *) shape(i)
  end do
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  dims = 0
  call MPI_Dims_create(size, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .true., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_coords(grid, rank, 2, place)
  if (any(dims > shape(1:2)) .or. shape(3) < 1) then
    if (rank == 0) print '(a)', 'heat: more ranks than rows or columns of the plate, or no steps'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if
  do i = 1, 2
    call MPI_Cart_shift(grid, i - 1, 1, below(i), above(i))
    first(i) = shape(i) * place(i) / dims(i) + 1
    last(i) = shape(i) * (place(i) + 1) / dims(i)
  end do
  if (rank == 0) print '(4(a,i0))', 'a plate of ', shape(1), ' x ', shape(2), ' cells on ', dims(1), ' x ', dims(2)

  allocate (now(first(1) - 1:last(1) + 1, first(2) - 1:last(2) + 1))
  call heat_up(now, first, last)
  next = now
  begun = MPI_Wtime()
  do step = 1, shape(3)
    call exchange()
    change = relax(now, next, first, last)
    call swap(now, next)
    if (mod(step, max(1, shape(3) / 5)) /= 0) cycle
    call MPI_Allreduce(change, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid)
    if (rank == 0) print '(a,i0,a,es9.2)', 'step ', step, ', residual ', largest
  end do
  if (rank == 0) print '(a,i0,a)', 'in ', nint((MPI_Wtime() - begun) * 1000), ' ms'

  allocate (whole(0:shape(1) + 1, 0:shape(2) + 1))
  call heat_up(whole, [1, 1], shape(1:2))
  whole_next = whole
  do step = 1, shape(3)
    change = relax(whole, whole_next, [1, 1], shape(1:2))
    call swap(whole, whole_next)
  end do
  wrong = count(now(first(1):last(1), first(2):last(2)) /= whole(first(1):last(1), first(2):last(2)))
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, grid)
  if (all_wrong > 0) then
    if (rank == 0) print '(i0,a)', all_wrong, ' cells differ from the serial result'
    call MPI_Abort(grid, 1)
  end if
  if (rank == 0) print '(a,i0,a)', 'equal to the serial result in all ', product(shape(1:2)), ' cells'
  call MPI_Comm_free(grid)
  call MPI_Finalize()
contains
  ! A cold plate with a hot bar, held at its edges.
  subroutine heat_up(plate, from, to)
    integer, intent(in) :: from(2), to(2)
    double precision, intent(out) :: plate(from(1) - 1:, from(2) - 1:)
    integer :: x, y
    plate = 0
    do y = from(2), to(2)
      do x = from(1), to(1)
        if (is_hot(x, y)) plate(x, y) = 1
      end do
    end do
  end subroutine

  pure logical function is_hot(x, y)
    integer, intent(in) :: x, y
    is_hot = abs(x - shape(1) / 2) < shape(1) / 4 .and. y == shape(2) / 2
  end function

  ! The rim of the block to the neighbours, theirs into the halo. The sections are not contiguous in one of the directions;
  ! nothing is copied.
  subroutine exchange()
    integer :: x0, x1, y0, y1
    x0 = first(1); x1 = last(1); y0 = first(2); y1 = last(2)
    call MPI_Irecv(now(x0 - 1, y0:y1), y1 - y0 + 1, MPI_DOUBLE_PRECISION, below(1), 1, grid, requests(1))
    call MPI_Irecv(now(x1 + 1, y0:y1), y1 - y0 + 1, MPI_DOUBLE_PRECISION, above(1), 2, grid, requests(2))
    call MPI_Irecv(now(x0:x1, y0 - 1), x1 - x0 + 1, MPI_DOUBLE_PRECISION, below(2), 3, grid, requests(3))
    call MPI_Irecv(now(x0:x1, y1 + 1), x1 - x0 + 1, MPI_DOUBLE_PRECISION, above(2), 4, grid, requests(4))
    call MPI_Isend(now(x1, y0:y1), y1 - y0 + 1, MPI_DOUBLE_PRECISION, above(1), 1, grid, requests(5))
    call MPI_Isend(now(x0, y0:y1), y1 - y0 + 1, MPI_DOUBLE_PRECISION, below(1), 2, grid, requests(6))
    call MPI_Isend(now(x0:x1, y1), x1 - x0 + 1, MPI_DOUBLE_PRECISION, above(2), 3, grid, requests(7))
    call MPI_Isend(now(x0:x1, y0), x1 - x0 + 1, MPI_DOUBLE_PRECISION, below(2), 4, grid, requests(8))
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE)
    if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(now)
  end subroutine

  double precision function relax(from, into, low, high) result(change)
    integer, intent(in) :: low(2), high(2)
    double precision, intent(in) :: from(low(1) - 1:, low(2) - 1:)
    double precision, intent(inout) :: into(low(1) - 1:, low(2) - 1:)
    integer :: x, y
    change = 0
    do y = low(2), high(2)
      do x = low(1), high(1)
        if (is_hot(x, y)) cycle
        into(x, y) = 0.25d0 * ((from(x - 1, y) + from(x + 1, y)) + (from(x, y - 1) + from(x, y + 1)))
        change = max(change, abs(into(x, y) - from(x, y)))
      end do
    end do
  end function

  subroutine swap(a, b)
    double precision, allocatable, intent(inout) :: a(:, :), b(:, :)
    double precision, allocatable :: c(:, :)
    call move_alloc(a, c)
    call move_alloc(b, a)
    call move_alloc(c, b)
  end subroutine
end program
