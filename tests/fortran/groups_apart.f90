! Intercommunicators, sessions and partitioned communication.
program groups_apart
  use mpi_f08
  implicit none
  integer :: rank, size
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (size > 1) call two_groups()
  call beside_init()
  call in_parts()
  if (rank == 0) print '(a)', 'test passed'
  call MPI_Finalize()
contains
  ! Even ranks and odd ones: leaders are ranks 0 and 1.
  subroutine two_groups()
    type(MPI_Comm) :: side, both, merged
    type(MPI_Group) :: theirs
    integer :: color, local, n, remote, sum_of, root, i
    integer, allocatable :: numbers(:)
    logical :: flag
    color = mod(rank, 2)
    call MPI_Comm_split(MPI_COMM_WORLD, color, rank, side)
    call MPI_Comm_rank(side, local)
    call MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - color, 12, both)
    call MPI_Comm_test_inter(both, flag)
    call check(flag, 'MPI_Comm_test_inter')
    call MPI_Comm_size(both, n)
    call MPI_Comm_remote_size(both, remote)
    call check(n + remote == size, 'MPI_Comm_remote_size')
    call MPI_Comm_remote_group(both, theirs)
    call MPI_Group_rank(theirs, i)
    call check(i == MPI_UNDEFINED, 'MPI_Comm_remote_group')
    call MPI_Group_free(theirs)
    ! the sum of the other group
    call MPI_Allreduce(rank, sum_of, 1, MPI_INTEGER, MPI_SUM, both)
    call check(sum_of == sum([(i, i = 1 - color, size - 1, 2)]), 'MPI_Allreduce of the others')
    ! from rank 0 to the odd ones
    n = merge(77, 0, rank == 0)
    root = merge(merge(MPI_ROOT, MPI_PROC_NULL, local == 0), 0, color == 0)
    call MPI_Bcast(n, 1, MPI_INTEGER, root, both)
    call check(n == merge(77, 0, color == 1 .or. rank == 0), 'MPI_Bcast from MPI_ROOT')
    allocate (numbers(remote))
    call MPI_Allgather(rank, 1, MPI_INTEGER, numbers, 1, MPI_INTEGER, both)
    call check(all(numbers == [(2 * i + 1 - color, i = 0, remote - 1)]), 'MPI_Allgather of the others')
    call MPI_Intercomm_merge(both, color == 1, merged)
    call MPI_Comm_rank(merged, i)
    call check(i == local + merge(0, (size + 1) / 2, color == 0), 'MPI_Intercomm_merge')
    call MPI_Comm_free(merged)
    call MPI_Comm_free(both)
    call MPI_Comm_free(side)
  end subroutine

  subroutine beside_init()
    type(MPI_Session) :: session
    type(MPI_Group) :: world
    type(MPI_Comm) :: comm
    type(MPI_Info) :: info
    character(len=MPI_MAX_PSET_NAME_LEN) :: name
    character(len=32) :: words
    integer :: n, length, i, members
    logical :: found, flag
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n)
    found = .false.
    do i = 0, n - 1
      length = MPI_MAX_PSET_NAME_LEN
      call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, length, name)
      found = found .or. name == 'mpi://WORLD'
    end do
    call check(found .and. n >= 2, 'process sets')
    call MPI_Session_get_pset_info(session, 'mpi://WORLD', info)
    length = 32
    call MPI_Info_get_string(info, 'mpi_size', length, words, flag)
    call check(flag, 'mpi_size')
    read (words, *) members
    call check(members == size, 'the size of a process set')
    call MPI_Info_free(info)
    call MPI_Group_from_session_pset(session, 'mpi://WORLD', world)
    call MPI_Comm_create_from_group(world, 'tern.fortran.groups', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm)
    call MPI_Group_free(world)
    call MPI_Allreduce(1, n, 1, MPI_INTEGER, MPI_SUM, comm)
    call check(n == size, 'a communicator of a session')
    call MPI_Comm_free(comm)
    call MPI_Group_from_session_pset(session, 'mpi://NOBODY', world, n)
    call check(n /= MPI_SUCCESS .and. world == MPI_GROUP_NULL, 'a process set that is not there')
    call MPI_Session_finalize(session)
    call check(session == MPI_SESSION_NULL, 'MPI_Session_finalize')
  end subroutine

  ! Each rank sends to itself, six parts as it has them; they are taken as three.
  subroutine in_parts()
    integer, parameter :: PARTS = 6, LENGTH = 500
    integer, asynchronous :: sent(LENGTH, PARTS), got(2 * LENGTH, PARTS / 2)
    type(MPI_Request) :: requests(2)
    integer :: round, i
    logical :: there
    integer(MPI_COUNT_KIND) :: few
    few = LENGTH
    call MPI_Psend_init(sent, PARTS, few, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(got, PARTS / 2, 2 * few, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    do round = 1, 3
      got = -1
      call MPI_Startall(2, requests)
      sent(:, 2) = 100 * round + 2
      sent(:, 5:6) = 100 * round + 5
      call MPI_Pready(1, requests(1))
      call MPI_Pready_range(4, 5, requests(1))
      there = .false.
      do while (.not. there)
        call MPI_Parrived(requests(2), 2, there)
      end do
      call check(all(got(:, 3) == 100 * round + 5), 'a part before the others')
      sent(:, 1) = 100 * round + 1
      sent(:, 3:4) = 100 * round + 3
      call MPI_Pready_list(3, [0, 2, 3], requests(1))
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(got(:LENGTH, 1) == 100 * round + 1) .and. all(got(LENGTH + 1:, 1) == 100 * round + 2) &
                 .and. all(got(:, 2) == 100 * round + 3), 'the parts')
    end do
    do i = 1, 2
      call MPI_Request_free(requests(i))
    end do
  end subroutine

  include 'check.inc'
end program
