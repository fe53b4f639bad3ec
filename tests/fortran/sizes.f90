! MPI_Sizeof of each type and kind that all compilers have, by both modules: scalars, arrays, sections.
module sizes_of_mpi
  implicit none
contains
  subroutine check_sizes_of_mpi
    use mpi
    logical :: flags(4)
    double precision :: x
    integer :: n, ierror
    call MPI_Sizeof(flags, n, ierror)
    if (n /= 4 .or. ierror /= MPI_SUCCESS) call wrong('LOGICALs by module mpi')
    call MPI_Sizeof(flags(2), n, ierror)
    if (n /= 4) call wrong('a LOGICAL by module mpi')
    call MPI_Sizeof(x, n, ierror)
    if (n /= 8) call wrong('a number by module mpi')
  end subroutine

  include 'wrong.inc'
end module

program sizes
  use mpi_f08
  use sizes_of_mpi
  implicit none
  integer, parameter :: short = selected_int_kind(4), tiny_one = selected_int_kind(2), long = selected_int_kind(18)
  integer(tiny_one) :: a
  integer(short) :: b(3)
  integer :: c, n, ierror
  integer(long) :: d(2, 3)
  real :: e(10)
  complex :: f
  complex(kind(1d0)) :: g(4)
  logical :: flag, flags(6)
  character(len=7) :: words(2)
  call MPI_Init()
  call MPI_Sizeof(a, n)
  if (n /= 1) call wrong('one byte')
  call MPI_Sizeof(b, n)
  if (n /= 2) call wrong('two bytes')
  call MPI_Sizeof(c, n, ierror)
  if (n /= 4 .or. ierror /= MPI_SUCCESS) call wrong('an INTEGER')
  call MPI_Sizeof(d(2:1:-1, ::2), n)
  if (n /= 8) call wrong('eight bytes')
  call MPI_Sizeof(e(::3), n)
  if (n /= 4) call wrong('REALs')
  call MPI_Sizeof(f, n)
  if (n /= 8) call wrong('a COMPLEX')
  call MPI_Sizeof(g, n)
  if (n /= 16) call wrong('COMPLEX numbers of twice the precision')
  call MPI_Sizeof(flag, n)
  if (n /= 4) call wrong('a LOGICAL')
  ierror = -1
  call MPI_Sizeof(flags(6:1:-2), n, ierror)
  if (n /= 4 .or. ierror /= MPI_SUCCESS) call wrong('LOGICALs')
  call MPI_Sizeof(words(2), n)
  if (n /= 7) call wrong('characters')
  call check_sizes_of_mpi
  call MPI_Finalize()
end program
