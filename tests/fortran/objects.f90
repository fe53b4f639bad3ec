! Strings, LOGICALs, arrays of handles, large counts, sizes: communicators, groups, infos, topologies, datatypes.
program objects
  use mpi_f08
  implicit none
  integer :: rank, size, length, n, class, code, i, ones(1), integers(10), bytes
  integer, allocatable :: sizes(:)
  logical :: flag, periods(2), remain(2)
  integer :: dims(2), coords(2), source, dest
  character(len=40) :: name
  character(len=3) :: short
  character(len=MPI_MAX_ERROR_STRING) :: text
  type(MPI_Comm) :: comm, sub
  type(MPI_Group) :: world, group
  type(MPI_Info) :: info
  type(MPI_Datatype) :: type, types(2), back(3)
  integer(MPI_ADDRESS_KIND) :: places(2), lb, extent, addresses(4)
  integer(MPI_COUNT_KIND) :: large
  type :: pair
    sequence
    integer :: number
    double precision :: value
  end type
  type(pair) :: one, other
  type(MPI_Datatype), allocatable :: all_types(:)
  integer, allocatable :: counts(:), displs(:), sent(:), got(:)
  character(len=20) :: packed
  integer :: position
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)

  ! strings are padded and trimmed
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_set_name(comm, 'a name with blanks   ')
  name = repeat('#', 40)
  call MPI_Comm_get_name(comm, name, length)
  if (name /= 'a name with blanks' .or. length /= 18) error stop 'the name of a communicator'
  call MPI_Comm_get_name(comm, short, length)
  if (short /= 'a n') error stop 'a name that is cut'
  call MPI_Info_create(info)
  call MPI_Info_set(info, '  key ', 'some value  ')
  call MPI_Info_get(info, 'key', 40, name, flag)
  if (.not. flag .or. name /= 'some value') error stop 'a value of an info'
  name = repeat('#', 40)
  length = 40
  call MPI_Info_get_string(info, 'key', length, name, flag)
  if (.not. flag .or. length /= 10 .or. name /= 'some value') error stop 'MPI_Info_get_string'
  length = 0
  name = 'as it was'
  call MPI_Info_get_string(info, 'key', length, name, flag)
  if (.not. flag .or. length /= 10 .or. name /= 'as it was') error stop 'MPI_Info_get_string without room'
  name = 'untouched'
  call MPI_Info_get_string(info, 'none', length, name, flag)
  if (flag .or. name /= 'untouched') error stop 'a key that is not there'
  call MPI_Info_get_nthkey(info, 0, name)
  if (name /= 'key') error stop 'the first key'
  call MPI_Info_free(info)
  if (info /= MPI_INFO_NULL) error stop 'an info that was freed'
  call MPI_Send(1, 1, MPI_INTEGER, size, 0, comm, code)
  call MPI_Error_class(code, class)
  call MPI_Error_string(code, text, length)
  if (class /= MPI_ERR_RANK .or. length < 10 .or. text(length+1:) /= ' ') error stop 'the text of an error'

  ! groups
  call MPI_Comm_group(comm, world)
  call MPI_Group_range_incl(world, 1, reshape([size - 1, 0, -1], [3, 1]), group)
  call MPI_Group_translate_ranks(group, 1, [0], world, ones)
  if (ones(1) /= size - 1) error stop 'ranges of ranks'
  call MPI_Group_free(group)
  call MPI_Group_free(world)

  ! LOGICALs of topologies
  dims = [size, 1]
  call MPI_Cart_create(comm, 2, dims, [.true., .false.], .false., sub)
  call MPI_Cart_get(sub, 2, dims, periods, coords)
  if (.not. periods(1) .or. periods(2) .or. dims(1) /= size .or. coords(1) /= rank) error stop 'MPI_Cart_get'
  call MPI_Cart_shift(sub, 0, 1, source, dest)
  if (dest /= mod(rank + 1, size)) error stop 'MPI_Cart_shift'
  call MPI_Comm_free(comm)
  remain = [.false., .true.]
  call MPI_Cart_sub(sub, remain, comm)
  call MPI_Comm_size(comm, n)
  if (n /= 1) error stop 'MPI_Cart_sub'
  call MPI_Comm_free(comm)
  call MPI_Comm_free(sub)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [rank], MPI_UNWEIGHTED, 1, [rank], MPI_UNWEIGHTED, &
    MPI_INFO_NULL, .false., comm)
  call MPI_Dist_graph_neighbors_count(comm, n, i, flag)
  if (n /= 1 .or. i /= 1 .or. flag) error stop 'a graph without weights'
  ones = 0
  call MPI_Neighbor_alltoallw([rank], [1], [0_MPI_ADDRESS_KIND], [MPI_INTEGER], ones, [1], [0_MPI_ADDRESS_KIND], &
    [MPI_INTEGER], comm)
  if (ones(1) /= rank) error stop 'MPI_Neighbor_alltoallw'
  call MPI_Comm_free(comm)

  ! arrays of datatypes
  call MPI_Get_address(one%number, places(1))
  call MPI_Get_address(one%value, places(2))
  places = MPI_Aint_diff(places(2), places(1)) * [0, 1]
  types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
  call MPI_Type_create_struct(2, [1, 1], places, types, type)
  call MPI_Type_commit(type)
  one = pair(5, 2.5d0)
  call MPI_Sendrecv(one%number, 1, type, rank, 0, other%number, 1, type, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (other%number /= 5 .or. other%value /= 2.5d0) error stop 'a structure'
  back(3) = MPI_BYTE
  call MPI_Type_get_contents(type, 10, 4, 3, integers, addresses, back)
  if (any(integers(1:3) /= [2, 1, 1]) .or. back(2) /= MPI_DOUBLE_PRECISION .or. back(3) /= MPI_BYTE) &
    error stop 'MPI_Type_get_contents'
  call MPI_Type_get_extent(type, lb, extent)
  if (lb /= 0 .or. extent < 12) error stop 'the extent of a structure'
  call MPI_Type_free(type)
  allocate (sizes(size), counts(size), displs(size), sent(size), got(size), all_types(size))
  counts = 1
  displs = [(4 * i, i = 0, size - 1)]
  all_types = MPI_INTEGER
  sent = [(100 * rank + i, i = 1, size)]
  call MPI_Alltoallw(sent, counts, displs, all_types, got, counts, displs, all_types, MPI_COMM_WORLD)
  if (any(got /= [(100 * i + rank + 1, i = 0, size - 1)])) error stop 'MPI_Alltoallw'
  got = sent
  call MPI_Alltoallw(MPI_IN_PLACE, counts, displs, all_types, got, counts, displs, all_types, MPI_COMM_WORLD)
  if (any(got /= [(100 * i + rank + 1, i = 0, size - 1)])) error stop 'MPI_Alltoallw in place'

  ! large counts by the kind of the argument
  call MPI_Type_contiguous(3_MPI_COUNT_KIND * 1000000000, MPI_BYTE, type)
  call MPI_Type_size(type, large)
  if (large /= 3000000000_MPI_COUNT_KIND) error stop 'a large datatype'
  call MPI_Type_free(type)
  sizes = 0
  call MPI_Allgather([rank], 1_MPI_COUNT_KIND, MPI_INTEGER, sizes, 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_COMM_WORLD)
  if (any(sizes /= [(i, i = 0, size - 1)])) error stop 'large counts'

  ! packing by name of the representation; sizes of variables
  position = 0
  call pack_and_unpack()
  call MPI_Sizeof(one%value, bytes)
  if (bytes /= 8) error stop 'MPI_Sizeof of a scalar'
  call MPI_Sizeof(sizes, bytes)
  if (bytes /= 4) error stop 'MPI_Sizeof of an array'
  call sizes_and_handles()
  call MPI_Finalize()
contains
  ! One of each kind, and handles that are compared with each other.
  subroutine sizes_and_handles()
    complex :: z(3)
    call MPI_Sizeof(1_1, n)
    call MPI_Sizeof(1_2, i)
    if (n /= 1 .or. i /= 2) error stop 'MPI_Sizeof of small integers'
    call MPI_Sizeof(large, n)
    call MPI_Sizeof(1.0, i)
    if (n /= 8 .or. i /= 4) error stop 'MPI_Sizeof of a large integer and a real'
    call MPI_Sizeof(z, n)
    call MPI_Sizeof((1d0, 2d0), i)
    if (n /= 8 .or. i /= 16) error stop 'MPI_Sizeof of complex numbers'
    call MPI_Sizeof(flag, n)
    call MPI_Sizeof('a', i)
    if (n /= 4 .or. i /= 1) error stop 'MPI_Sizeof of a LOGICAL and a character'
    if (MPI_GROUP_NULL /= MPI_Group(MPI_GROUP_NULL%MPI_VAL) .or. MPI_GROUP_NULL == MPI_GROUP_EMPTY) error stop 'groups'
    if (MPI_MESSAGE_NULL == MPI_MESSAGE_NO_PROC .or. .not. MPI_MESSAGE_NULL /= MPI_MESSAGE_NO_PROC) error stop 'messages'
    if (MPI_OP_NULL == MPI_SUM .or. .not. MPI_MAX /= MPI_MIN) error stop 'operations'
    if (MPI_SESSION_NULL /= MPI_SESSION_NULL .or. MPI_WIN_NULL /= MPI_WIN_NULL) error stop 'null handles'
    if (MPI_ERRORS_RETURN == MPI_ERRORS_ARE_FATAL .or. .not. MPI_ERRORS_RETURN /= MPI_ERRORS_ABORT) error stop 'handlers'
    if (MPI_INFO_NULL == MPI_INFO_ENV .or. MPI_FILE_NULL /= MPI_FILE_NULL) error stop 'infos and files'
    if (MPI_REQUEST_NULL /= MPI_REQUEST_NULL .or. MPI_INTEGER == MPI_REAL) error stop 'requests and datatypes'
  end subroutine

  subroutine pack_and_unpack()
    integer(MPI_ADDRESS_KIND) :: at
    integer :: number
    at = 0
    call MPI_Pack_external('external32', 258, 1, MPI_INTEGER, packed, 20_MPI_ADDRESS_KIND, at)
    if (at /= 4 .or. ichar(packed(3:3)) /= 1 .or. ichar(packed(4:4)) /= 2) error stop 'MPI_Pack_external'
    at = 0
    call MPI_Unpack_external('external32', packed, 20_MPI_ADDRESS_KIND, at, number, 1, MPI_INTEGER)
    if (number /= 258) error stop 'MPI_Unpack_external'
  end subroutine
end program
