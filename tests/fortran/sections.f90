! Sections of arrays: non-blocking operations work on the array itself, in every direction and number of dimensions.
program sections
  use mpi_f08
  implicit none
  integer :: rank, size, i, j, code, class
  integer :: line(30), grid(6, 8), box(4, 5, 6), plain(200), expected(4, 5, 6)
  double precision :: sums(10), all_sums(5)
  character(len=4) :: words(6), got(3)
  type(MPI_Request) :: requests(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (.not. MPI_SUBARRAYS_SUPPORTED) call fail('MPI_SUBARRAYS_SUPPORTED')

  ! every third element, to itself
  line = [(i, i = 1, 30)]
  plain = 0
  call MPI_Irecv(plain, 10, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(line(1:30:3), 10, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (any(plain(1:10) /= line(1:30:3))) call fail('a strided send')

  ! into every second one; the others stay, and the data is there when the request is complete, not when it is posted
  line = -1
  call MPI_Irecv(line(2:30:2), 15, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, requests(1))
  call MPI_Isend([(i, i = 101, 115)], 15, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (any(line(2:30:2) /= [(i, i = 101, 115)]) .or. any(line(1:29:2) /= -1)) call fail('a strided receive')

  ! backwards
  line = [(i, i = 1, 30)]
  call MPI_Sendrecv(line(30:1:-1), 30, MPI_INTEGER, rank, 3, plain, 30, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, &
    MPI_STATUS_IGNORE)
  if (any(plain(1:30) /= [(i, i = 30, 1, -1)])) call fail('a send of an array backwards')

  ! a row, a block, and the first elements of a block
  grid = reshape([(i, i = 1, 48)], [6, 8])
  call MPI_Sendrecv(grid(3, :), 8, MPI_INTEGER, rank, 4, plain, 8, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (any(plain(1:8) /= grid(3, :))) call fail('a row')
  call MPI_Sendrecv(grid(2:5, 3:7:2), 12, MPI_INTEGER, rank, 4, plain, 12, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, &
    MPI_STATUS_IGNORE)
  if (any(plain(1:12) /= reshape(grid(2:5, 3:7:2), [12]))) call fail('a block')
  plain = 0
  call MPI_Sendrecv(grid(2:5, 3:7:2), 7, MPI_INTEGER, rank, 4, plain, 12, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, &
    MPI_STATUS_IGNORE)
  if (any(plain(1:7) /= [grid(2:5, 3), grid(2:4, 5)]) .or. any(plain(8:12) /= 0)) call fail('part of a block')

  ! three dimensions
  box = 0
  expected = 0
  plain = [(i, i = 1, 200)]
  expected(1:4:3, 2:5:2, 6:1:-2) = reshape(plain(1:12), [2, 2, 3])
  call MPI_Sendrecv(plain, 12, MPI_INTEGER, rank, 5, box(1:4:3, 2:5:2, 6:1:-2), 12, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, &
    MPI_STATUS_IGNORE)
  if (any(box /= expected)) call fail('a section of three dimensions')

  ! elements that are several of the datatype
  words = ['abcd', 'efgh', 'ijkl', 'mnop', 'qrst', 'uvwx']
  call MPI_Sendrecv(words(1:6:2), 12, MPI_CHARACTER, rank, 6, got, 12, MPI_CHARACTER, rank, 6, MPI_COMM_WORLD, &
    MPI_STATUS_IGNORE)
  if (any(got /= ['abcd', 'ijkl', 'qrst'])) call fail('strided characters')

  ! collectives; reductions copy
  grid = rank
  if (rank == 0) grid(2, :) = [(100 + i, i = 1, 8)]
  call MPI_Bcast(grid(2, :), 8, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (any(grid(2, :) /= [(100 + i, i = 1, 8)]) .or. any(grid(1, :) /= rank)) call fail('a row in MPI_Bcast')
  sums = [(i * 1.0d0, i = 1, 10)]
  call MPI_Allreduce(sums(1:10:2), all_sums, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (any(all_sums /= size * sums(1:10:2))) call fail('a strided reduction')
  call MPI_Allreduce(MPI_IN_PLACE, sums(1:10:2), 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (any(sums(1:10:2) /= all_sums) .or. any(sums(2:10:2) /= [2, 4, 6, 8, 10])) call fail('a strided reduction in place')

  ! what cannot be described is refused, not sent wrongly
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Isend(line(1:30:3), 5, MPI_DOUBLE_PRECISION, rank, 7, MPI_COMM_WORLD, requests(1), code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('a section of other elements than the datatype')
  call MPI_Isend(line(1:30:3), 11, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, requests(1), code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('more elements than the section has')
  call MPI_Iallreduce(sums(1:10:2), all_sums, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1), code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('a non-blocking reduction of a section')
  j = 0
  call MPI_Finalize()
contains
  subroutine fail(what)
    character(len=*), intent(in) :: what
    write (*, '(a,i0,2a)') 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
