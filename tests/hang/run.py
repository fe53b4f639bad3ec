#!/usr/bin/env python3
"""Jobs that hang, are wrong, die, or run where little is permitted: what the user is told.

Nothing here depends on how fast the machine is: a hang is asked for reports (SIGUSR1) until one
says what it should, and every limit is one that only a job that never ends would reach.
"""

import argparse
import pathlib
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bad
import containers
import cuts
import deaths
import doctor
import hangs
import hosts
import paths
import reports
import sites
import slurm
import soak
from support import Failure, Skip, Tools

HERE = pathlib.Path(__file__).resolve().parent


def options():
    parser = argparse.ArgumentParser(description="test hangs, errors and deaths from the user's side")
    parser.add_argument("filter", nargs="*", help="run cases whose name contains one of these")
    parser.add_argument("--mpi", default=str(HERE.parent.parent / "build"), help="prefix of the library")
    parser.add_argument("--hydra", default=None, help="Hydra's mpiexec (default: that of build/peers/mpich, or PATH)")
    parser.add_argument("--openmpi", default=None, help="Open MPI's mpirun (default: that of build/peers/openmpi)")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--all", action="store_true", help="also the long ones, which else run only if a filter names them")
    return parser.parse_args()


def main():
    arguments = options()
    cases = [case for module in (hangs, reports, bad, deaths, containers, hosts, cuts, paths, sites, slurm, doctor, soak) for case in module.cases()]
    if arguments.filter:
        cases = [case for case in cases if any(f in case.name for f in arguments.filter)]
    elif not arguments.all:
        cases = [case for case in cases if not case.is_long]
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return 0
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="tern-hang-") as scratch:
        tools = Tools(arguments.mpi, arguments.hydra, arguments.openmpi, scratch)
        for case in cases:
            try:
                case.run(tools)
                passed += 1
                print(f"ok      {case.name}", flush=True)
            except Skip as reason:
                skipped += 1
                print(f"skipped {case.name}: {reason}", flush=True)
            except Failure as failure:
                failed += 1
                print(f"FAILED  {case.name}: {failure}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {case.name}: {traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
