! mpif.h in the free form of Fortran.
program include_file_free
  implicit none
  include 'mpif.h'
  integer :: ierror, rank, n, file, status(MPI_STATUS_SIZE)
  integer(MPI_OFFSET_KIND) :: place
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 4, n, 1, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, status, ierror)
  if (n /= rank .or. status(MPI_TAG) /= 4) call wrong('a message')
  place = MPI_DISPLACEMENT_CURRENT
  file = MPI_FILE_NULL
  if (place >= 0 .or. kind(MPI_DISPLACEMENT_CURRENT) /= MPI_OFFSET_KIND) call wrong('the kind of a displacement')
  if (MPI_Aint_diff(MPI_Aint_add(80_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND), 80_MPI_ADDRESS_KIND) /= 8) call wrong('addresses')
  call MPI_Finalize(ierror)
contains
  include 'wrong.inc'
end program
