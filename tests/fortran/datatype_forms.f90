! Datatypes: with `mpi_f08` in both widths, and with module `mpi`.
module f08
  use mpi_f08
  implicit none
  integer, parameter :: K = kind(0), D = MPI_ADDRESS_KIND
  integer :: rank, i, ierror, integers, addresses, types, combiner
  integer :: a(24), b(24), c(24)
  integer(K) :: count
  integer(D) :: lb, extent
  integer(MPI_COUNT_KIND) :: large, large_lb
  type(MPI_Datatype) :: made, old, inside(2)
contains
  subroutine envelope()
    call MPI_Type_get_envelope(made, integers, addresses, types, combiner, ierror)
  end subroutine
  subroutine envelopes()
    integer :: numbers(10)
    integer(MPI_ADDRESS_KIND) :: places(10)
    call MPI_Type_create_hindexed(2, [1, 3], [28_D, 8_D], MPI_INTEGER, made, ierror)
    call envelope()
    call check(integers == 3 .and. addresses == 2 .and. types == 1 .and. combiner == MPI_COMBINER_HINDEXED, 'an envelope')
    numbers = -1
    places = -1
    call MPI_Type_get_contents(made, integers, addresses, types, numbers, places, inside, ierror)
    call check(all(numbers(:4) == [2, 1, 3, -1]) .and. all(places(:3) == [28, 8, -1]) .and. inside(1) == MPI_INTEGER, 'contents')
    call MPI_Type_free(made, ierror)
  end subroutine
  include 'datatype_forms.inc'
end module

module f08_large
  use mpi_f08
  implicit none
  integer, parameter :: K = MPI_COUNT_KIND, D = MPI_ADDRESS_KIND
  integer :: rank, i, ierror, combiner
  integer :: a(24), b(24), c(24)
  integer(K) :: count, integers, addresses, counts, types
  integer(D) :: lb, extent
  integer(MPI_COUNT_KIND) :: large, large_lb
  type(MPI_Datatype) :: made, old, inside(2)
contains
  subroutine envelope()
    call MPI_Type_get_envelope(made, integers, addresses, counts, types, combiner, ierror)
  end subroutine
  ! Counts of large constructors are large in the contents, and no integers.
  subroutine envelopes()
    integer :: numbers(10)
    integer(MPI_ADDRESS_KIND) :: places(10)
    integer(MPI_COUNT_KIND) :: large_numbers(10)
    call MPI_Type_create_hindexed(2_K, [1_K, 5000000000_K], [28_K, 8_K], MPI_BYTE, made, ierror)
    call envelope()
    call check(integers == 0 .and. addresses == 0 .and. counts == 5 .and. types == 1 .and. combiner == MPI_COMBINER_HINDEXED, &
               'a large envelope')
    numbers = -1
    places = -1
    large_numbers = -1
    call MPI_Type_get_contents(made, integers, addresses, counts, types, numbers, places, large_numbers, inside, ierror)
    call check(all(large_numbers(:6) == [2_K, 1_K, 5000000000_K, 28_K, 8_K, -1_K]) .and. inside(1) == MPI_BYTE, 'large contents')
    call check(numbers(1) == -1 .and. places(1) == -1, 'what large contents have not')
    call MPI_Type_free(made, ierror)
    call MPI_Type_create_struct(2_K, [1_K, 3_K], [0_K, 6000000000_K], [MPI_BYTE, MPI_REAL], made, ierror)
    call envelope()
    call check(integers == 0 .and. counts == 5 .and. types == 2 .and. combiner == MPI_COMBINER_STRUCT, 'that of a structure')
    call MPI_Type_get_contents(made, integers, addresses, counts, types, numbers, places, large_numbers, inside, ierror)
    call check(large_numbers(5) == 6000000000_K .and. inside(1) == MPI_BYTE .and. inside(2) == MPI_REAL, 'those of a structure')
    call MPI_Type_free(made, ierror)
  end subroutine
  include 'datatype_forms.inc'
end module

module f90
  use mpi
  implicit none
  integer, parameter :: K = kind(0), D = MPI_ADDRESS_KIND
  integer :: rank, i, ierror, integers, addresses, types, combiner, made, old, inside(2)
  integer :: a(24), b(24), c(24)
  integer(K) :: count
  integer(D) :: lb, extent
  integer(MPI_COUNT_KIND) :: large, large_lb
contains
  subroutine envelope()
    call MPI_Type_get_envelope(made, integers, addresses, types, combiner, ierror)
  end subroutine
  subroutine envelopes()
    integer :: numbers(10)
    integer(MPI_ADDRESS_KIND) :: places(10)
    call MPI_Type_create_hindexed(2, [1, 3], [28_D, 8_D], MPI_INTEGER, made, ierror)
    call envelope()
    call check(integers == 3 .and. addresses == 2 .and. types == 1 .and. combiner == MPI_COMBINER_HINDEXED, 'an envelope')
    numbers = -1
    places = -1
    call MPI_Type_get_contents(made, integers, addresses, types, numbers, places, inside, ierror)
    call check(all(numbers(:4) == [2, 1, 3, -1]) .and. all(places(:3) == [28, 8, -1]) .and. inside(1) == MPI_INTEGER, 'contents')
    call MPI_Type_free(made, ierror)
  end subroutine
  include 'datatype_forms.inc'
end module

program datatype_forms
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
