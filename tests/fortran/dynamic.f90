! Dynamic processes: this program spawns itself with arguments, and two halves of the job meet at a port.
program dynamic
  use mpi_f08
  implicit none
  type(MPI_Comm) :: parent
  character(len=64) :: word
  integer :: rank, size
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_get_parent(parent)
  if (parent /= MPI_COMM_NULL) then
    call child()
  else
    call by_arguments()
    call several()
    if (size > 1) call at_a_port()
    call not_there()
    if (rank == 0) print '(a)', 'test passed'
  end if
  call MPI_Finalize()
contains
  subroutine child()
    integer :: n
    call check(command_argument_count() == 2, 'arguments of a child')
    call get_command_argument(1, word)
    call check(word == 'two words', 'the first argument')
    call get_command_argument(2, word)
    read (word, *) n
    call MPI_Allreduce(rank + n, n, 1, MPI_INTEGER, MPI_SUM, parent)
    call MPI_Comm_disconnect(parent)
    call check(parent == MPI_COMM_NULL, 'MPI_Comm_disconnect')
  end subroutine

  subroutine by_arguments()
    type(MPI_Comm) :: children
    character(len=16) :: arguments(3)
    character(len=1024) :: self
    integer :: codes(2), n
    call get_command_argument(0, self)
    ! A blank string ends the list; blanks behind a word are none of it.
    arguments = [character(len=16) :: 'two words', '40', '']
    ! Of account at the root only: elsewhere the list has no end.
    if (rank /= 0) arguments = 'nonsense'
    codes = -1
    call MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes)
    call check(all(codes == MPI_SUCCESS), 'codes of MPI_Comm_spawn')
    call MPI_Comm_remote_size(children, n)
    call check(n == 2, 'how many were spawned')
    call MPI_Allreduce(1, n, 1, MPI_INTEGER, MPI_SUM, children)
    call check(n == 81, 'what the children say')
    call MPI_Comm_disconnect(children)
  end subroutine

  subroutine several()
    type(MPI_Comm) :: children
    type(MPI_Info) :: infos(2)
    character(len=1024) :: commands(2)
    character(len=16) :: arguments(2, 3)
    integer :: n, sizes(2)
    call get_command_argument(0, commands(1))
    commands(2) = commands(1)
    arguments(1, :) = [character(len=16) :: 'two words', '1', '']
    arguments(2, :) = [character(len=16) :: 'two words', '1000', '']
    sizes = [1, 1]
    infos = MPI_INFO_NULL
    n = 2
    if (rank /= 0) then
      n = huge(n)
      arguments = 'nonsense'
      infos(1)%MPI_VAL = -77777
    end if
    call MPI_Comm_spawn_multiple(n, commands, arguments, sizes, infos, 0, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE)
    call MPI_Allreduce(1, n, 1, MPI_INTEGER, MPI_SUM, children)
    call check(n == 1 + 1001, 'what the children of two commands say')
    call MPI_Comm_disconnect(children)
  end subroutine

  subroutine at_a_port()
    type(MPI_Comm) :: side, both
    character(len=MPI_MAX_PORT_NAME) :: port, found
    integer :: color, n, there
    color = mod(rank, 2)
    call MPI_Comm_split(MPI_COMM_WORLD, color, rank, side)
    if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port)
      call MPI_Publish_name('tern fortran', MPI_INFO_NULL, port)
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
    if (color == 0) then
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, side, both)
    else
      call MPI_Lookup_name('tern fortran', MPI_INFO_NULL, found)
      call MPI_Comm_connect(found, MPI_INFO_NULL, 0, side, both)
    end if
    call MPI_Comm_remote_size(both, there)
    call MPI_Allreduce(1, n, 1, MPI_INTEGER, MPI_SUM, both)
    call check(n == there, 'who came to the port')
    call MPI_Comm_disconnect(both)
    if (rank == 0) then
      call MPI_Unpublish_name('tern fortran', MPI_INFO_NULL, port)
      call MPI_Close_port(port)
    end if
    call MPI_Comm_free(side)
  end subroutine

  subroutine not_there()
    type(MPI_Comm) :: children
    character(len=MPI_MAX_PORT_NAME) :: port
    integer :: code, class
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_spawn('/nowhere/to/be/found', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, &
                        MPI_ERRCODES_IGNORE, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_SPAWN .and. children == MPI_COMM_NULL, 'a command that is not there')
    call MPI_Lookup_name('never published', MPI_INFO_NULL, port, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_NAME, 'a name that nobody published')
  end subroutine

  include 'check.inc'
end program
