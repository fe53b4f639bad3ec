! mpif.h in the fixed form of FORTRAN 77.
      program main
      implicit none
      include 'mpif.h'
      integer rank, size, ierror, status(MPI_STATUS_SIZE), left, right
      integer requests(2), n, total, i, keyval, ones(4)
      double precision x(10), y(10), start
      logical flag
      integer(kind=MPI_ADDRESS_KIND) address, value
      character*(MPI_MAX_PROCESSOR_NAME) name
      external sum_of
      integer op
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierror)
      start = MPI_WTIME()
      right = mod(rank + 1, size)
      left = mod(rank + size - 1, size)
      do 10 i = 1, 10
        x(i) = rank * 10 + i
   10 continue
      call MPI_IRECV(y, 10, MPI_DOUBLE_PRECISION, left, 3,
     &  MPI_COMM_WORLD, requests(1), ierror)
      call MPI_ISEND(x, 10, MPI_DOUBLE_PRECISION, right, 3,
     &  MPI_COMM_WORLD, requests(2), ierror)
      call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierror)
      if (y(10) .ne. left * 10 + 10) call bad('a message')
      call MPI_SENDRECV(x, 10, MPI_DOUBLE_PRECISION, right, 4, y, 10,
     &  MPI_DOUBLE_PRECISION, left, 4, MPI_COMM_WORLD, status, ierror)
      if (status(MPI_SOURCE) .ne. left) call bad('a status')
      call MPI_GET_COUNT(status, MPI_DOUBLE_PRECISION, n, ierror)
      if (n .ne. 10) call bad('a count')
      total = rank
      call MPI_ALLREDUCE(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, ierror)
      if (total .ne. size * (size - 1) / 2) call bad('MPI_IN_PLACE')
      call MPI_OP_CREATE(sum_of, .true., op, ierror)
      call MPI_ALLREDUCE(rank, total, 1, MPI_INTEGER, op,
     &  MPI_COMM_WORLD, ierror)
      if (total .ne. size * (size - 1) / 2) call bad('an operation')
      call MPI_OP_FREE(op, ierror)
      call MPI_GET_PROCESSOR_NAME(name, n, ierror)
      if (n .lt. 1 .or. name(n+1:) .ne. ' ') call bad('the host')
      call MPI_GET_ADDRESS(x, address, ierror)
      if (address .eq. 0) call bad('an address')
      if (MPI_AINT_DIFF(MPI_AINT_ADD(address, 8_8), address) .ne. 8)
     &  call bad('addresses')
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, value,
     &  flag, ierror)
      if (flag .and. value .lt. size) call bad('MPI_UNIVERSE_SIZE')
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 0,
     &  ierror)
      call MPI_KEYVAL_FREE(keyval, ierror)
      if (keyval .ne. MPI_KEYVAL_INVALID) call bad('a keyval')
      ones(1) = 1
      call MPI_BCAST(ones, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
      if (MPI_WTIME() .lt. start) call bad('the clock')
      call MPI_FINALIZE(ierror)
      end

      subroutine sum_of(invec, inoutvec, len, datatype)
      integer len, datatype, i, invec(len), inoutvec(len)
      do 10 i = 1, len
        inoutvec(i) = inoutvec(i) + invec(i)
   10 continue
      end

      subroutine bad(what)
      implicit none
      include 'mpif.h'
      character*(*) what
      integer ierror
      write (*, *) 'wrong: ', what
      call MPI_ABORT(MPI_COMM_WORLD, 1, ierror)
      end
