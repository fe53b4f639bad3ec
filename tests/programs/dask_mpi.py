"""dask-mpi: a scheduler, a client and workers that find each other by MPI."""

DESCRIPTION = "dask_mpi.initialize on 4 ranks: a scheduler, a client, two workers; an array is summed"
VERSION = "2026.3.0"
PROGRAM = """
import dask.array
from dask_mpi import initialize
from distributed import Client

if __name__ == "__main__":
    is_client = initialize(nthreads=1, exit=False, dashboard=False, interface="lo")
    if is_client:
        with Client() as client:
            client.wait_for_workers(2)
            total = dask.array.arange(1_000_000, chunks=50_000).sum().compute()
            print("workers", len(client.scheduler_info(n_workers=-1)["workers"]), "total", total, flush=True)
            client.shutdown()
"""


def check(place):
    python = place.venv("numpy==2.4.6", f"dask-mpi=={VERSION}", "dask[array]")
    place.python_version(python, "dask-mpi", "distributed", "mpi4py")
    (place.work / "cluster.py").write_text(PROGRAM)
    said = place.mpiexec(4, python, "cluster.py")
    place.expect("the sum by two workers", said, r"^workers 2 total 499999500000$")
