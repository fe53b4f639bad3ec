! Ranks, messages and a sum, by module mpi_f08.
program hello
  use mpi_f08
  implicit none
  integer :: rank, size, total, token, length
  type(MPI_Status) :: status
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Get_processor_name(name, length)
  if (length < 1 .or. name(length:length) == ' ' .or. name(length+1:) /= ' ') error stop 'the name of the host'
  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= size * (size + 1) / 2) error stop 'the sum of the ranks'
  if (size > 1) then
    if (rank == 0) then
      call MPI_Send(17, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
      call MPI_Recv(token, 1, MPI_INTEGER, size - 1, 5, MPI_COMM_WORLD, status)
      if (token /= 17 + size - 1) error stop 'the token'
      if (status%MPI_SOURCE /= size - 1 .or. status%MPI_TAG /= 5) error stop 'the status'
    else
      call MPI_Recv(token, 1, MPI_INTEGER, rank - 1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Send(token + 1, 1, MPI_INTEGER, mod(rank + 1, size), 5, MPI_COMM_WORLD)
    end if
  end if
  call MPI_Finalize()
end program
