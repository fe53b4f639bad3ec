! What MPI-3 removed and other libraries have still: addresses and extents in INTEGER. Only against their mpif.h.
      program main
      implicit none
      include 'mpif.h'
      integer ierror, rank, lengths(2), places(2), types(2), made, lb
      integer ub, extent, handler, class, keyval, value, x, y, got(2)
      integer several, status(MPI_STATUS_SIZE)
      logical flag
      common /pair/ x, y
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_ADDRESS(x, places(1), ierror)
      call MPI_ADDRESS(y, places(2), ierror)
      if (places(2) - places(1) .ne. 4) call bad('a distance')
      places(2) = places(2) - places(1)
      places(1) = 0
      lengths(1) = 1
      lengths(2) = 1
      types(1) = MPI_INTEGER
      types(2) = MPI_INTEGER
      call MPI_TYPE_STRUCT(2, lengths, places, types, made, ierror)
      call MPI_TYPE_COMMIT(made, ierror)
      call MPI_TYPE_EXTENT(made, extent, ierror)
      call MPI_TYPE_LB(made, lb, ierror)
      call MPI_TYPE_UB(made, ub, ierror)
      if (extent .ne. 8 .or. lb .ne. 0 .or. ub .ne. 8)
     &  call bad('an extent')
      x = 5
      y = 7
      call MPI_SENDRECV(x, 1, made, rank, 1, got, 2, MPI_INTEGER, rank,
     &  1, MPI_COMM_WORLD, status, ierror)
      if (got(1) .ne. 5 .or. got(2) .ne. 7) call bad('a structure')
      call MPI_TYPE_FREE(made, ierror)
      call MPI_TYPE_HVECTOR(2, 1, 4, MPI_INTEGER, made, ierror)
      call MPI_TYPE_EXTENT(made, extent, ierror)
      if (extent .ne. 8) call bad('MPI_TYPE_HVECTOR')
      call MPI_TYPE_FREE(made, ierror)
      call MPI_TYPE_HINDEXED(2, lengths, places, MPI_INTEGER, made,
     &  ierror)
      call MPI_TYPE_SIZE(made, several, ierror)
      if (several .ne. 8) call bad('MPI_TYPE_HINDEXED')
      call MPI_TYPE_FREE(made, ierror)
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
      if (.not. flag .or. value .lt. 32767) call bad('MPI_TAG_UB')
      call MPI_ERRHANDLER_SET(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
      call MPI_ERRHANDLER_GET(MPI_COMM_WORLD, handler, ierror)
      if (handler .ne. MPI_ERRORS_RETURN) call bad('a handler')
      call MPI_SEND(x, 1, MPI_INTEGER, -77, 0, MPI_COMM_WORLD, ierror)
      call MPI_ERROR_CLASS(ierror, class, ierror)
      if (class .ne. MPI_ERR_RANK) call bad('a class')
      call MPI_FINALIZE(ierror)
      end

      subroutine bad(what)
      implicit none
      include 'mpif.h'
      character*(*) what
      integer ierror
      write (*, *) 'wrong: ', what
      call MPI_ABORT(MPI_COMM_WORLD, 1, ierror)
      end
