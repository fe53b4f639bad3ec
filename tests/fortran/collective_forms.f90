! All collectives in all their forms: with `mpi_f08` in both widths, and with module `mpi`.
module f08
  use mpi_f08
  implicit none
  integer, parameter :: K = kind(0), D = kind(0)
  integer :: rank, size, ierror
  integer, allocatable, asynchronous :: a(:), b(:)
  integer(K), allocatable :: some(:), twos(:), ones(:)
  integer(D), allocatable :: places(:), pairs_at(:)
  type(MPI_Datatype), allocatable :: types(:), ints(:)
  type(MPI_Datatype) :: pair, both(2), both_pairs(2)
  type(MPI_Request) :: request
  type(MPI_Comm) :: comm
contains
  include 'collective_forms.inc'
end module

module f08_large
  use mpi_f08
  implicit none
  integer, parameter :: K = MPI_COUNT_KIND, D = MPI_ADDRESS_KIND
  integer :: rank, size, ierror
  integer, allocatable, asynchronous :: a(:), b(:)
  integer(K), allocatable :: some(:), twos(:), ones(:)
  integer(D), allocatable :: places(:), pairs_at(:)
  type(MPI_Datatype), allocatable :: types(:), ints(:)
  type(MPI_Datatype) :: pair, both(2), both_pairs(2)
  type(MPI_Request) :: request
  type(MPI_Comm) :: comm
contains
  include 'collective_forms.inc'
end module

module f90
  use mpi
  implicit none
  integer, parameter :: K = kind(0), D = kind(0)
  integer :: rank, size, ierror
  integer, allocatable, asynchronous :: a(:), b(:)
  integer(K), allocatable :: some(:), twos(:), ones(:)
  integer(D), allocatable :: places(:), pairs_at(:)
  integer, allocatable :: types(:), ints(:)
  integer :: pair, both(2), both_pairs(2), request, comm
contains
  include 'collective_forms.inc'
end module

program collective_forms
  use mpi_f08, only: MPI_Init, MPI_Finalize
  use f08, only: small => run
  use f08_large, only: large => run
  use f90, only: plain => run
  implicit none
  call MPI_Init()
  call small()
  call large()
  call plain()
  call MPI_Finalize()
end program
