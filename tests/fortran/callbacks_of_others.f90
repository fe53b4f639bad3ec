! Procedures of the application for what is no communicator: error handlers of windows, files and sessions, attributes of
! datatypes and windows, data representations.
module procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: of_windows = 0, of_files = 0, of_sessions = 0, copies = 0, deletions = 0
contains
  subroutine window_handler(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    if (win == MPI_WIN_NULL .or. error_code /= MPI_ERR_OTHER) error stop 'arguments of a handler of windows'
    of_windows = of_windows + 1
  end subroutine
  subroutine file_handler(file, error_code)
    type(MPI_File) :: file
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (file /= MPI_FILE_NULL .or. class /= MPI_ERR_NO_SUCH_FILE) error stop 'arguments of a handler of files'
    of_files = of_files + 1
  end subroutine
  subroutine session_handler(session, error_code)
    type(MPI_Session) :: session
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (session == MPI_SESSION_NULL .or. class /= MPI_ERR_ARG) error stop 'arguments of a handler of sessions'
    of_sessions = of_sessions + 1
  end subroutine
  subroutine copy(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldtype == MPI_DATATYPE_NULL .or. type_keyval == MPI_KEYVAL_INVALID) error stop 'arguments of the copy function'
    attribute_val_out = attribute_val_in + extra_state
    copies = copies + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete(win, win_keyval, attribute_val, extra_state, ierror)
    type(MPI_Win) :: win
    integer :: win_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (win == MPI_WIN_NULL .or. attribute_val /= 42 .or. extra_state /= 5) error stop 'arguments of the delete function'
    deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  ! In the file each number is greater by one.
  subroutine read_less(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: in_memory(:), in_file(:)
    if (datatype /= MPI_INTEGER .or. extra_state /= 1) error stop 'arguments of the function that reads'
    call c_f_pointer(userbuf, in_memory, [int(position) + count])
    call c_f_pointer(filebuf, in_file, [count])
    in_memory(int(position) + 1:) = in_file - int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine write_more(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: in_memory(:), in_file(:)
    if (datatype /= MPI_INTEGER .or. extra_state /= 1) error stop 'arguments of the function that writes'
    call c_f_pointer(userbuf, in_memory, [int(position) + count])
    call c_f_pointer(filebuf, in_file, [count])
    in_file = in_memory(int(position) + 1:) + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine
  ! The same with large counts; what is written is multiplied by two.
  subroutine read_less_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(MPI_COUNT_KIND) :: count
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    integer, pointer :: in_memory(:), in_file(:)
    if (datatype /= MPI_INTEGER .or. extra_state /= -5000000000_MPI_ADDRESS_KIND) error stop 'arguments of a large function'
    call c_f_pointer(userbuf, in_memory, [position + count])
    call c_f_pointer(filebuf, in_file, [count])
    in_memory(position + 1:) = in_file / 2
    ierror = MPI_SUCCESS
  end subroutine
  subroutine write_more_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(MPI_COUNT_KIND) :: count
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    integer, pointer :: in_memory(:), in_file(:)
    call c_f_pointer(userbuf, in_memory, [position + count])
    call c_f_pointer(filebuf, in_file, [count])
    in_file = in_memory(position + 1:) * 2
    ierror = MPI_SUCCESS
  end subroutine
  subroutine extent(datatype, file_extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: file_extent, extra_state
    integer :: ierror
    if (datatype /= MPI_INTEGER) error stop 'the datatype of an extent'
    file_extent = 4
    ierror = MPI_SUCCESS
  end subroutine
end module

program callbacks_of_others
  use procedures
  implicit none
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call windows()
  call datatypes()
  call files()
  call sessions()
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'test passed'
  call MPI_Finalize()
contains
  subroutine windows()
    type(MPI_Win) :: win
    type(MPI_Errhandler) :: handler
    integer :: key, memory(4)
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_create_errhandler(window_handler, handler)
    call MPI_Win_set_errhandler(win, handler)
    call MPI_Errhandler_free(handler)
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER)
    call check(of_windows == 1, 'the error handler of a window')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete, key, 5_MPI_ADDRESS_KIND)
    call MPI_Win_set_attr(win, key, 42_MPI_ADDRESS_KIND)
    call MPI_Win_get_attr(win, key, value, flag)
    call check(flag .and. value == 42, 'the attribute of a window')
    call MPI_Win_free_keyval(key)
    call MPI_Win_free(win)
    call check(deletions == 1, 'the attribute of a window that is freed')
  end subroutine

  subroutine datatypes()
    type(MPI_Datatype) :: pair, other
    integer :: added, kept, lost
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Type_create_keyval(copy, MPI_TYPE_NULL_DELETE_FN, added, 100_MPI_ADDRESS_KIND)
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, kept, 0_MPI_ADDRESS_KIND)
    call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, lost, 0_MPI_ADDRESS_KIND)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_set_attr(pair, added, 7_MPI_ADDRESS_KIND)
    call MPI_Type_set_attr(pair, kept, 8_MPI_ADDRESS_KIND)
    call MPI_Type_set_attr(pair, lost, 9_MPI_ADDRESS_KIND)
    call MPI_Type_dup(pair, other)
    call MPI_Type_get_attr(other, added, value, flag)
    call check(copies == 1 .and. flag .and. value == 107, 'an attribute that is copied')
    call MPI_Type_get_attr(other, kept, value, flag)
    call check(flag .and. value == 8, 'an attribute that is kept')
    call MPI_Type_get_attr(other, lost, value, flag)
    call check(.not. flag, 'an attribute that is not copied')
    call MPI_Type_free(pair)
    call MPI_Type_free(other)
  end subroutine

  subroutine files()
    type(MPI_File) :: file
    type(MPI_Errhandler) :: handler
    integer :: code, length, mine(4), back(4), raw(4)
    integer(MPI_OFFSET_KIND) :: at
    character(len=MPI_MAX_PROCESSOR_NAME) :: name
    call MPI_File_create_errhandler(file_handler, handler)
    call MPI_File_set_errhandler(MPI_FILE_NULL, handler)
    call MPI_File_open(MPI_COMM_WORLD, '/nonexistent/file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
    call check(of_files == 1 .and. code /= MPI_SUCCESS, 'the error handler of files')
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL)
    call MPI_Errhandler_free(handler)

    call MPI_Register_datarep_c('doubled', read_less_c, write_more_c, extent, -5000000000_MPI_ADDRESS_KIND)
    call MPI_Register_datarep('small ints', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, 0_MPI_ADDRESS_KIND)
    call MPI_Register_datarep_c('large', MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent, 0_MPI_ADDRESS_KIND)
    call MPI_Register_datarep('one more', read_less, write_more, extent, 1_MPI_ADDRESS_KIND)
    ! Jobs of several numbers of ranks may run at once.
    if (rank == 0) call system_clock(length)
    call MPI_Bcast(length, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    write (name, '(a,i0)') '/tmp/tern-datarep-', length
    call MPI_File_open(MPI_COMM_WORLD, name, ior(MPI_MODE_RDWR, ior(MPI_MODE_CREATE, MPI_MODE_DELETE_ON_CLOSE)), &
                       MPI_INFO_NULL, file)
    mine = [1, 2, 3, 4] + 10 * rank
    at = 4 * rank
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'one more', MPI_INFO_NULL)
    call MPI_File_write_at_all(file, at, mine, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_read_at_all(file, at, back, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
    call MPI_File_read_at_all(file, at, raw, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(back == mine), 'what was written and read by a representation')
    call check(all(raw == mine + 1), 'what a representation has left in the file')
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'doubled', MPI_INFO_NULL)
    call MPI_File_write_at_all(file, at, mine, 4_MPI_COUNT_KIND, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_read_at_all(file, at, back, 4_MPI_COUNT_KIND, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'large', MPI_INFO_NULL)
    call MPI_File_read_at_all(file, at, raw, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(back == mine) .and. all(raw == 2 * mine), 'a representation with large counts')
    call MPI_File_close(file)
  end subroutine

  subroutine sessions()
    type(MPI_Session) :: session
    type(MPI_Errhandler) :: handler
    type(MPI_Group) :: group
    integer :: code
    call MPI_Session_create_errhandler(session_handler, handler)
    call MPI_Session_init(MPI_INFO_NULL, handler, session)
    call MPI_Errhandler_free(handler)
    call MPI_Group_from_session_pset(session, 'no such set', group, code)
    call check(of_sessions == 1 .and. code /= MPI_SUCCESS, 'the error handler of a session')
    call MPI_Session_finalize(session)
  end subroutine

  include 'check.inc'
end program
