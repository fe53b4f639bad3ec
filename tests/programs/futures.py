"""mpi4py.futures: tasks for other ranks, in its three ways."""

DESCRIPTION = "workers by MPI_Comm_spawn, by `-m mpi4py.futures`, by MPICommExecutor; each sums squares, and hands on an exception"
PROGRAM = """
import sys
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor, MPIPoolExecutor

def square(number):
    return number * number, MPI.COMM_WORLD.Get_rank()

def broken(number):
    raise ValueError(f"told {number}")

def use(executor):
    pairs = list(executor.map(square, range(100), chunksize=5))
    assert sum(pair[0] for pair in pairs) == 328350, pairs
    try:
        executor.submit(broken, 7).result()
    except ValueError as error:
        assert str(error) == "told 7"
    else:
        raise AssertionError("the exception was lost")
    print("the squares are right", sys.argv[1])

if __name__ == "__main__":
    if sys.argv[1] == "communicator":
        with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
            if executor is not None:
                use(executor)
    else:
        with MPIPoolExecutor(max_workers=3) as executor:
            use(executor)
"""


def check(place):
    python = place.venv()
    place.python_version(python, "mpi4py")
    (place.work / "tasks.py").write_text(PROGRAM)
    said = place.mpiexec(1, python, "tasks.py", "spawn")
    place.expect("by spawning", said, r"^the squares are right spawn$")
    said = place.mpiexec(4, python, "-m", "mpi4py.futures", "tasks.py", "module")
    place.expect("by -m mpi4py.futures", said, r"^the squares are right module$")
    said = place.mpiexec(4, python, "tasks.py", "communicator")
    place.expect("by MPICommExecutor", said, r"^the squares are right communicator$")
