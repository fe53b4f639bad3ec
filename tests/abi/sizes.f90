! MPI_Sizeof of MPICH's module mpi, and handles that are derived types there: procedures of its library with names of gfortran's.
program sizes
  use mpi
  implicit none
  integer :: code, n
  integer(kind=1) :: one
  integer(kind=2) :: two
  integer(kind=8) :: eight
  real :: single, row(5)
  double precision :: double
  complex :: pair
  logical :: truth
  character :: letter
  type(MPI_Comm) :: a, b, c
  call MPI_Init(code)
  call MPI_Sizeof(code, n, code)
  call want(4)
  call MPI_Sizeof(one, n, code)
  call want(1)
  call MPI_Sizeof(two, n, code)
  call want(2)
  call MPI_Sizeof(eight, n, code)
  call want(8)
  call MPI_Sizeof(single, n, code)
  call want(4)
  call MPI_Sizeof(row, n, code)
  call want(4)
  call MPI_Sizeof(double, n, code)
  call want(8)
  call MPI_Sizeof(pair, n, code)
  call want(8)
  call MPI_Sizeof(truth, n, code)
  call want(4)
  call MPI_Sizeof(letter, n, code)
  call want(1)
  a%MPI_VAL = MPI_COMM_WORLD
  b%MPI_VAL = MPI_COMM_WORLD
  c%MPI_VAL = MPI_COMM_SELF
  if (.not. a == b .or. a /= b .or. a == c .or. .not. a /= c) error stop 'handles'
  call MPI_Finalize(code)
contains
  subroutine want(size)
    integer, intent(in) :: size
    if (code /= MPI_SUCCESS .or. n /= size) error stop 'MPI_Sizeof'
    n = -1
  end subroutine
end program
