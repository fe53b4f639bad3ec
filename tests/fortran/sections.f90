! Sections of arrays: non-blocking operations work on the array itself, in every direction and number of dimensions.
program sections
  use mpi_f08
  implicit none
  integer :: rank, size, i, j, code, class
  integer :: line(30), grid(6, 8), box(4, 5, 6), plain(200), expected(4, 5, 6)
  double precision :: sums(10), all_sums(5)
  character(len=4) :: words(6), got(3)
  type(MPI_Request) :: requests(2)
  type(MPI_Datatype) :: pairs
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

  ! a datatype that spans two elements: a copy, since the call returns when all is done
  call MPI_Type_contiguous(2, MPI_INTEGER, pairs)
  call MPI_Type_commit(pairs)
  line = [(i, i = 1, 30)]
  plain = 0
  call MPI_Sendrecv(line(1:30:3), 5, pairs, rank, 6, plain, 10, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (any(plain(1:10) /= line(1:30:3))) call fail('a datatype that spans two elements')

  ! what cannot be described is refused, not sent wrongly
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Isend(line(1:30:3), 5, MPI_DOUBLE_PRECISION, rank, 7, MPI_COMM_WORLD, requests(1), code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('a section of other elements than the datatype')
  call MPI_Isend(line(1:30:3), 11, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, requests(1), code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('more elements than the section has')
  call MPI_Isend(line(1:30:3), 3, pairs, rank, 7, MPI_COMM_WORLD, requests(1), code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('a datatype that spans two elements, non-blocking')
  call MPI_Bcast(line(1:30:3), 6, pairs, 0, MPI_COMM_WORLD, code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) call fail('more of a datatype than the section has')
  call MPI_Type_free(pairs)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  call for_each
  call copied
  call of_no_account()
  call MPI_Finalize()
contains
  ! Where a count is that of each rank, blocks come one behind the other in the section, whatever its shape.
  subroutine for_each
    integer, asynchronous :: table(6, 2 * size), send(2)
    integer :: plain(2 * size), counts(size), places(size), got(2), uneven(5, 2)
    send = [10 * rank, 10 * rank + 1]
    table = -1
    call MPI_Allgather(send, 2, MPI_INTEGER, table(2:5:3, ::2), 2, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(table(2, ::2) /= [(10 * i, i = 0, size - 1)])) call fail('MPI_Allgather into a block, first')
    if (any(table(5, ::2) /= [(10 * i + 1, i = 0, size - 1)])) call fail('MPI_Allgather into a block, second')
    if (any(table(1, :) /= -1) .or. any(table(:, 2::2) /= -1)) call fail('MPI_Allgather beside a block')
    call MPI_Alltoall(table(2:5:3, ::2), 2, MPI_INTEGER, plain, 2, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(plain /= [(10 * rank, 10 * rank + 1, i = 1, size)])) call fail('MPI_Alltoall from a block')
    ! as many from each rank as its number in reverse order
    counts = 2
    places = [(2 * (size - i), i = 1, size)]
    table = -1
    call MPI_Igatherv(send, 2, MPI_INTEGER, table(2:5:3, ::2), counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (rank == 0 .and. any(table(2, ::2) /= [(10 * i, i = size - 1, 0, -1)])) call fail('MPI_Igatherv into a block')
    if (rank /= 0 .and. any(table /= -1)) call fail('MPI_Igatherv on others than the root')
    ! partitions of a block cannot be described
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    table = -1
    call MPI_Psend_init(send, 2, 1_MPI_COUNT_KIND, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(uneven(2:5:3, :), 2, 1_MPI_COUNT_KIND, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(2), code)
    got(1) = code
    call MPI_Error_class(got(1), got(2))
    if (got(2) /= MPI_ERR_BUFFER) call fail('partitions of a block are not refused')
    call MPI_Request_free(requests(1))
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  end subroutine

  ! What no datatype describes works on a copy that lives as long as the request.
  subroutine copied
    integer, asynchronous :: matrix(4, 6), other(4, 6)
    integer :: ones(size), places(size)
    type(MPI_Datatype) :: types(size)
    double precision, asynchronous :: mine(10), theirs(12)
    integer :: round
    mine = [(i * 1.0d0, i = 1, 10)]
    theirs = -1
    call MPI_Iallreduce(mine(1:10:2), theirs(12:2:-2), 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1))
    ! neither part of what is received nor of what is sent: the sixth element, and what lies between
    theirs(2) = 77
    mine(2:10:2) = 0
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (any(theirs(12:4:-2) /= size * mine(1:10:2))) call fail('MPI_Iallreduce of sections')
    if (theirs(2) /= 77 .or. any(theirs(1:11:2) /= -1)) call fail('MPI_Iallreduce beside sections')
    matrix = rank
    matrix(2, :) = [(i, i = 1, 6)]
    call MPI_Iallreduce(MPI_IN_PLACE, matrix(2:3, ::2), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (any(matrix(2, ::2) /= size * [1, 3, 5]) .or. any(matrix(2, 2::2) /= [2, 4, 6])) call fail('a section in place')
    if (any(matrix(3, ::2) /= size * (size - 1) / 2) .or. any(matrix([1, 4], :) /= rank)) call fail('beside it')
    ! persistent: what the section has when it is started counts
    call MPI_Allreduce_init(matrix(1, :), other(4, :), 6, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    do round = 1, 3
      matrix(1, :) = [(round * 100 + 10 * rank + i, i = 1, 6)]
      other = 0
      call MPI_Start(requests(1))
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      if (any(other(4, :) /= [(round * 100 + 10 * (size - 1) + i, i = 1, 6)])) call fail('MPI_Allreduce_init of sections')
      if (any(other(1:3, :) /= 0)) call fail('MPI_Allreduce_init beside sections')
    end do
    call MPI_Request_free(requests(1))
    ! displacements in bytes count in the section as if it were contiguous
    ones = merge(2, 0, [(i <= 3, i = 1, size)])
    places = [(8 * (i - 1), i = 1, size)]
    types = MPI_INTEGER
    if (rank > 2) ones = 0
    matrix = rank
    do i = 1, 6
      matrix(2 + mod(i - 1, 2), 1 + 2 * ((i - 1) / 2)) = 100 * rank + i
    end do
    do round = 1, 2
      other = -1
      if (round == 1) then
        call MPI_Alltoallw(matrix(2:3, ::2), ones, places, types, other(1:4:3, 1:3), ones, places, types, MPI_COMM_WORLD)
      else
        call MPI_Ialltoallw(matrix(2:3, ::2), ones, places, types, other(1:4:3, 1:3), ones, places, types, MPI_COMM_WORLD, &
          requests(1))
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      end if
      do i = 1, min(size, 3)
        if (rank > 2) cycle
        if (any(other([1, 4], i) /= 100 * (i - 1) + [2 * rank + 1, 2 * rank + 2])) call fail('MPI_Alltoallw of sections')
      end do
      if (any(other(2:3, :) /= -1) .or. any(other(:, 4:) /= -1)) call fail('MPI_Alltoallw beside sections')
    end do
  end subroutine

  ! Where a datatype is of no account there need be none; where it is, it is the datatype that is wrong.
  subroutine of_no_account()
    integer :: from(12), to(2 * size, 2)
    type(MPI_Datatype) :: no_type
    from = rank
    to = -1
    if (rank == 0) then
      call MPI_Gather(from(1:4:2), 2, MPI_INTEGER, to(:, 1), 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
      if (any(to(:, 1) /= [(i / 2, i = 0, 2 * size - 1)])) call fail('MPI_Gather of sections')
    else
      call MPI_Gather(from(1:4:2), 2, MPI_INTEGER, to(1:4:2, 1), 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD, code)
      if (code /= MPI_SUCCESS) call fail('a section that is of no account')
    end if
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    no_type%MPI_VAL = 77777
    call MPI_Send(from(1:4:2), 2, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_TYPE) call fail('a section of MPI_DATATYPE_NULL')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Send(from(1:4:2), 2, no_type, rank, 0, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_TYPE) call fail('a section of what is no datatype')
  end subroutine

  subroutine fail(what)
    character(len=*), intent(in) :: what
    write (*, '(a,i0,2a)') 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
