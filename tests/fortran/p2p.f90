! Messages in all ways of asking for their end: indices count from 1, arrays of requests and statuses, MPI_STATUSES_IGNORE,
! probes, persistent requests, MPI_BOTTOM.
program p2p
  use mpi_f08
  implicit none
  integer :: rank, size, i, n, index, right, left, outcount, place
  integer, parameter :: many = 40
  integer :: data(many), got(many), indices(2 * many)
  type(MPI_Request) :: requests(2 * many), one
  type(MPI_Status) :: statuses(2 * many), status
  type(MPI_Message) :: message
  type(MPI_Datatype) :: absolute
  integer(MPI_ADDRESS_KIND) :: address
  logical :: flag, seen(2 * many)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)

  ! all at once
  call post()
  call MPI_Waitall(2 * many, requests, statuses)
  do i = 1, many
    call check(got(i) == left * 100 + i, 'what arrived')
    call check(statuses(i)%MPI_SOURCE == left .and. statuses(i)%MPI_TAG == i, 'the statuses of MPI_Waitall')
    call MPI_Get_count(statuses(i), MPI_INTEGER, n)
    call check(n == 1, 'the count of a status')
    call check(requests(i) == MPI_REQUEST_NULL, 'requests that are complete')
  end do
  call post()
  call MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE)

  ! one after the other
  call post()
  seen = .false.
  do i = 1, 2 * many
    call MPI_Waitany(2 * many, requests, index, status)
    call check(index >= 1 .and. index <= 2 * many, 'the index of MPI_Waitany')
    call check(.not. seen(index), 'an index comes once')
    if (index <= many) call check(status%MPI_TAG == index, 'index and status belong together')
    seen(index) = .true.
  end do
  call check(all(seen), 'all have come')
  call MPI_Waitany(2 * many, requests, index, MPI_STATUS_IGNORE)
  call check(index == MPI_UNDEFINED, 'no active request')

  ! some
  call post()
  seen = .false.
  do
    call MPI_Waitsome(2 * many, requests, outcount, indices, statuses)
    if (outcount == MPI_UNDEFINED) exit
    do i = 1, outcount
      call check(.not. seen(indices(i)), 'an index comes once in MPI_Waitsome')
      seen(indices(i)) = .true.
    end do
  end do
  call check(all(seen), 'all have come by MPI_Waitsome')
  call MPI_Testall(2 * many, requests, flag, MPI_STATUSES_IGNORE)
  call check(flag, 'MPI_Testall of no requests')

  ! persistent
  call MPI_Recv_init(got, 3, MPI_INTEGER, left, 7, MPI_COMM_WORLD, requests(1))
  call MPI_Send_init(data, 3, MPI_INTEGER, right, 7, MPI_COMM_WORLD, requests(2))
  do n = 1, 3
    data(1:3) = [rank, n, n * n]
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(got(1:3) == [left, n, n * n]), 'a persistent request')
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))
  call check(requests(1) == MPI_REQUEST_NULL, 'a request that was freed')

  ! probes, a matched message, an absolute address
  call MPI_Isend(data, 3, MPI_INTEGER, right, 9, MPI_COMM_WORLD, one)
  call MPI_Mprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, message, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call check(n == 3 .and. status%MPI_SOURCE == left, 'what MPI_Mprobe says')
  call MPI_Mrecv(got, 3, MPI_INTEGER, message, status)
  call check(message == MPI_MESSAGE_NULL, 'a message that was received')
  call MPI_Wait(one, status)
  call MPI_Get_address(place, address)
  call MPI_Type_create_hindexed(1, [1], [address], MPI_INTEGER, absolute)
  call MPI_Type_commit(absolute)
  place = -1
  call MPI_Sendrecv(data(2), 1, MPI_INTEGER, right, 4, MPI_BOTTOM, 1, absolute, left, 4, MPI_COMM_WORLD, status)
  call MPI_F_sync_reg(place)
  call check(place == 3, 'what arrives at MPI_BOTTOM')
  call MPI_Type_free(absolute)
  call MPI_Finalize()
contains
  subroutine post()
    do i = 1, many
      data(i) = rank * 100 + i
      call MPI_Irecv(got(i), 1, MPI_INTEGER, left, i, MPI_COMM_WORLD, requests(i))
    end do
    do i = many, 1, -1
      call MPI_Isend(data(i), 1, MPI_INTEGER, right, i, MPI_COMM_WORLD, requests(many + i))
    end do
  end subroutine
  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    write (*, '(a,i0,2a)') 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
