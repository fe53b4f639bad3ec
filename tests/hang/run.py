#!/usr/bin/env python3
"""Jobs that hang, are wrong, die, or run where little is permitted: what the user is told.

Nothing here depends on how fast the machine is: a hang is asked for reports (SIGUSR1) until one
says what it should, and every limit is one that only a job that never ends would reach.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bad
import containers
import cuts
import deaths
import disks
import doctor
import hangs
import hosts
import joined
import paths
import reports
import sessions
import sites
import slurm
import soak
import strangers
from lanes import play

HERE = pathlib.Path(__file__).resolve().parent
# They run beside each other: most cases wait most of their time. Those of the first use shared memory outside of namespaces, and
# some look whether any is left behind, so one runs after the other. Of the second any number could; the long ones come first.
LANES = [((hangs, reports, bad, deaths, joined, sessions, disks, containers, sites, slurm, doctor), 1), ((cuts, soak, paths, hosts, strangers), 3)]


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
    lanes = [[case for module in modules for case in module.cases()] for modules, _ in LANES]
    if arguments.filter:
        lanes = [[case for case in lane if any(f in case.name for f in arguments.filter)] for lane in lanes]
    elif not arguments.all:
        lanes = [[case for case in lane if not case.is_long] for lane in lanes]
    if arguments.list:
        print("\n".join(case.name for lane in lanes for case in lane))
        return 0
    return play([(cases, at_once) for cases, (_, at_once) in zip(lanes, LANES)], arguments)


if __name__ == "__main__":
    sys.exit(main())
