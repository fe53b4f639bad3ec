! Partitions of sections of arrays: they lie at equal distances where each is a whole number of elements, or of columns.
program partitioned
  use mpi_f08
  implicit none
  integer, asynchronous :: line(60), grid(6, 8), plain(60)
  character(len=4), asynchronous :: words(6), letters(3)
  complex(8), asynchronous :: z(10), numbers(5)
  integer :: rank, i
  type(MPI_Request) :: requests(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)

  ! from every fifth element, forwards and backwards
  line = [(i, i = 1, 60)]
  call send_of_line(line(1:60:5), 3, 4)
  call check(all(plain(1:12) == line(1:60:5)), 'a strided send')
  call send_of_line(line(60:1:-5), 3, 4)
  call check(all(plain(1:12) == line(60:1:-5)), 'a send backwards')
  call send_of_line(line(60:1:-1), 12, 5)
  call check(all(plain == line(60:1:-1)), 'a send of all backwards')
  call send_of_line(line(60:1:-5), 12, 0)
  call check(all(plain == 0), 'partitions of nothing')

  ! into every fifth element; the others stay
  call receive_of_line(line(3:60:5), 4, 3)
  call check(all(line(3:60:5) == [(100 + i, i = 1, 12)]), 'a strided receive')
  call check(count(line == -1) == 48, 'beside a strided receive')
  call receive_of_line(line(60:1:-5), 4, 3)
  call check(all(line(60:1:-5) == [(100 + i, i = 1, 12)]), 'a receive backwards')
  call check(count(line == -1) == 48, 'beside a receive backwards')
  call receive_of_line(line(60:1:-5), 1, 12)
  call check(all(line(60:1:-5) == [(100 + i, i = 1, 12)]), 'one partition backwards')

  ! columns of a block, two to a partition, and the whole block as one partition
  grid = reshape([(i, i = 1, 48)], [6, 8])
  call send_of_block(grid(5:1:-2, 8:1:-2), 2, 6)
  call check(all(plain(1:12) == reshape(grid(5:1:-2, 8:1:-2), [12])), 'columns backwards')
  call send_of_block(grid(2:5, ::3), 3, 4)
  call check(all(plain(1:12) == reshape(grid(2:5, ::3), [12])), 'columns')
  call send_of_block(grid(2:5, ::3), 1, 7)
  call check(all(plain(1:7) == reshape(grid(2:5, 1:5:3), [7])) .and. plain(8) == 0, 'part of a block as one partition')

  call elements_that_are_several
  call refused
  call MPI_Finalize()
contains
  ! A round in which the last partition is ready first.
  subroutine round(partitions)
    integer, intent(in) :: partitions
    integer :: k
    call MPI_Startall(2, requests)
    do k = partitions - 1, 0, -1
      call MPI_Pready(k, requests(1))
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine send_of_line(from, partitions, each)
    integer, asynchronous, intent(in) :: from(:)
    integer, intent(in) :: partitions, each
    plain = 0
    call MPI_Psend_init(from, partitions, int(each, MPI_COUNT_KIND), MPI_INTEGER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(1))
    call MPI_Precv_init(plain, 1, int(partitions * each, MPI_COUNT_KIND), MPI_INTEGER, rank, 5, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(2))
    call round(partitions)
  end subroutine

  subroutine send_of_block(from, partitions, each)
    integer, asynchronous, intent(in) :: from(:, :)
    integer, intent(in) :: partitions, each
    plain = 0
    call MPI_Psend_init(from, partitions, int(each, MPI_COUNT_KIND), MPI_INTEGER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(1))
    call MPI_Precv_init(plain, 1, int(partitions * each, MPI_COUNT_KIND), MPI_INTEGER, rank, 5, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(2))
    call round(partitions)
  end subroutine

  subroutine receive_of_line(into, partitions, each)
    integer, asynchronous, intent(inout) :: into(:)
    integer, intent(in) :: partitions, each
    plain = 0
    plain(1:12) = [(100 + i, i = 1, 12)]
    line = -1
    call MPI_Psend_init(plain, 2, 6_MPI_COUNT_KIND, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(into, partitions, int(each, MPI_COUNT_KIND), MPI_INTEGER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(2))
    call round(2)
  end subroutine

  ! Elements that are several of the datatype.
  subroutine elements_that_are_several
    words = ['abcd', 'efgh', 'ijkl', 'mnop', 'qrst', 'uvwx']
    letters = ' '
    call MPI_Psend_init(words(1:6:2), 3, 4_MPI_COUNT_KIND, MPI_CHARACTER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(letters, 1, 12_MPI_COUNT_KIND, MPI_CHARACTER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call round(3)
    call check(all(letters == words(1:6:2)), 'partitions of characters')
    z = [(cmplx(i, -i, 8), i = 1, 10)]
    numbers = 0
    call MPI_Psend_init(z(9:1:-2), 5, 2_MPI_COUNT_KIND, MPI_REAL8, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(numbers, 1, 10_MPI_COUNT_KIND, MPI_REAL8, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call round(5)
    call check(all(numbers == z(9:1:-2)), 'partitions of complex numbers')
  end subroutine

  ! What lies at unequal distances, or is not there. The codes of errors do not become more.
  subroutine refused
    integer(MPI_ADDRESS_KIND) :: before, after
    integer :: codes(5), first(5), class, k, length
    logical :: there
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, before, there)
    do i = 1, 100
      call MPI_Psend_init(z(1:9:2), 10, 1_MPI_COUNT_KIND, MPI_REAL8, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), codes(1))
      call MPI_Psend_init(grid(2:5, ::3), 6, 2_MPI_COUNT_KIND, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), &
        codes(2))
      call MPI_Precv_init(line(60:1:-5), 3, 5_MPI_COUNT_KIND, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), &
        codes(3))
      call MPI_Precv_init(line(60:1:-5), 3, 2_MPI_COUNT_KIND, MPI_REAL8, rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), &
        codes(4))
      call MPI_Isend(z(1:9:2), 9, MPI_REAL8, rank, 5, MPI_COMM_WORLD, requests(1), codes(5))
      if (i == 1) first = codes
      call check(all(codes == first), 'an error has another code each time')
    end do
    do k = 1, 5
      call MPI_Error_class(codes(k), class)
      call check(class == MPI_ERR_BUFFER, 'what lies at unequal distances is not refused')
      call MPI_Error_string(codes(k), text, length)
      call check(index(text, 'argument `buf` is a section') > 0, 'a refusal does not say what it is about: ' // text)
    end do
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, after, there)
    call check(before == after, 'each refusal takes a code')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  end subroutine

  include 'check.inc'
end program
