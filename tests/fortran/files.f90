! Files: offsets of MPI_OFFSET_KIND, views by sub-array types, collective, split, shared pointers and requests; errors return.
program files
  use mpi_f08
  implicit none
  integer, parameter :: many = 12
  integer :: rank, size, number, i, n, code, class, mode
  integer :: mine(many), back(many), sections(2, many)
  character(len=80) :: name
  character(len=MPI_MAX_DATAREP_STRING) :: datarep
  character(len=MPI_MAX_ERROR_STRING) :: text
  type(MPI_File) :: file
  type(MPI_Datatype) :: part, etype, filetype
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  integer(MPI_OFFSET_KIND) :: bytes, at
  logical :: flag
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (rank == 0) call system_clock(number)
  call MPI_Bcast(number, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  write (name, '(a,i0,a,i0)') '/tmp/tern-fortran-', number, '-', size
  mine = [(rank * 1000 + i, i = 1, many)]

  ! nothing of files is fatal unless the program wants it
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class)
  call MPI_Error_string(code, text, n)
  call check(class == MPI_ERR_NO_SUCH_FILE .and. file == MPI_FILE_NULL, 'a file that is not there')
  call check(index(text, trim(name)) > 0, 'the text of an error names the file: '//trim(text))

  ! the name is trimmed; every rank writes its columns of a matrix
  call MPI_File_open(MPI_COMM_WORLD, name, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file)
  call MPI_Type_create_subarray(2, [2 * size, many / 2], [2, many / 2], [2 * rank, 0], MPI_ORDER_FORTRAN, MPI_INTEGER, part)
  call MPI_Type_commit(part)
  call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, part, 'native', MPI_INFO_NULL)
  call MPI_File_write_all(file, mine, many, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call check(n == many, 'the count of a collective write')
  ! Others may still be writing: only this order says what all see (MPI 5.0 section 14.6.1).
  call MPI_File_sync(file)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_sync(file)
  call MPI_File_get_size(file, bytes)
  call check(bytes == 4_MPI_OFFSET_KIND * many * size, 'the size')
  call MPI_File_get_view(file, at, etype, filetype, datarep)
  call check(at == 0 .and. etype == MPI_INTEGER .and. datarep == 'native', 'the view')
  back = 0
  call MPI_File_read_at_all_begin(file, 0_MPI_OFFSET_KIND, back, many, MPI_INTEGER)
  call MPI_File_read_at_all_end(file, back, status)
  call check(all(back == mine), 'a split collective')
  call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
  at = 2_MPI_OFFSET_KIND * mod(rank + 1, size)
  call MPI_File_read_at(file, at, back, 2, MPI_INTEGER, status)
  call check(all(back(1:2) == [(mod(rank + 1, size) * 1000 + i, i = 1, 2)]), 'what another rank wrote')

  ! a section of an array, without its neighbours, while the program goes on
  sections = -1
  call MPI_File_iread_at(file, int(2 * rank, MPI_OFFSET_KIND), sections(1, 1:2), 2, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call check(all(sections(1, 1:2) == mine(1:2)) .and. all(sections(2, :) == -1), 'a section')

  ! one that no datatype describes is an error of the file, which returns
  call MPI_File_iwrite_at(file, 0_MPI_OFFSET_KIND, sections(1, :), 3, MPI_DOUBLE_PRECISION, request, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_BUFFER, 'a section that is refused')

  ! shared pointer, positions and modes
  call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET)
  call MPI_File_write_ordered(file, [rank, -rank], 2, MPI_INTEGER, status)
  call MPI_File_get_position_shared(file, at)
  call check(at == 2 * size, 'the shared pointer')
  call MPI_File_seek(file, int(2 * rank, MPI_OFFSET_KIND), MPI_SEEK_SET)
  call MPI_File_read(file, back, 2, MPI_INTEGER, status)
  call check(all(back(1:2) == [rank, -rank]), 'what was written in order')
  call MPI_File_get_position(file, at)
  call check(at == 2 * rank + 2, 'the position')
  call MPI_File_set_atomicity(file, .true.)
  call MPI_File_get_atomicity(file, flag)
  call MPI_File_get_amode(file, mode)
  call check(flag .and. mode == ior(MPI_MODE_CREATE, MPI_MODE_RDWR), 'atomicity and mode')
  call MPI_Type_free(part)
  call MPI_File_close(file)
  call check(file == MPI_FILE_NULL, 'a closed file')
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL)
  if (rank == 0) print '(a)', 'test passed'
  call MPI_Finalize()
contains
  include 'check.inc'
end program
