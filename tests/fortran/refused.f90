! An error of which the program does not take care: it ends the job, and names the call as Fortran has made it (refused.txt).
program refused
  use mpi_f08
  implicit none
  complex, asynchronous :: z(60)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Psend_init(z(60:1:-5), 3, 3_MPI_COUNT_KIND, MPI_REAL, 0, 77, MPI_COMM_WORLD, MPI_INFO_NULL, request)
end program
