#!/usr/bin/env python3
"""Builds programs of others on Tern and runs them with known answers: `make programs`.

A program is a file beside this one with DESCRIPTION and check(place). What was fetched and built stays below build/programs/
and is used again. `--record` writes what came of it into docs/programs.md, and keeps the lines of programs that were not run.
"""

import argparse
import datetime
import importlib
import os
import pathlib
import re
import sys
import time

import common

HERE = pathlib.Path(__file__).resolve().parent
ORDER = ["futures", "mpi4py_fft", "dask_mpi", "h5py", "petsc", "fftw", "mumps", "scalapack", "mpich_suite", "mpich_suite_abi", "romio", "pnetcdf"]
RECORD = common.ROOT / "docs" / "programs.md"
HEAD = """# Programs of others

Fetched from PyPI or Debian's source packages, built with Tern's wrappers as they are, and run with an answer that is known.
`make programs` does all of it (some build for minutes), `python3 tests/programs/run.py NAME` one;
`--record` writes this table. Of ScaLAPACK and SuperLU_DIST the mirror lists source packages but does not have the archives
(bookworm, trixie and sid in November 2026), so ScaLAPACK is run as Debian has built it, and SuperLU_DIST is not.

| program | versions | what is run | outcome | date |
|---|---|---|---|---|
"""


class Outcome:
    """What came of one program, as a row of the table."""

    def __init__(self, name, description):
        self.name, self.description, self.versions, self.text = name, description, {}, ""

    def row(self):
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        date = datetime.date.today().isoformat()
        return f"| {self.name} | {versions} | {self.description} | {self.text} | {date} |"


def attempt(name, prefix):
    """(passed, failed, skipped) and what to record."""
    module = importlib.import_module(name)
    outcome = Outcome(name, module.DESCRIPTION)
    begun = time.monotonic()
    counts = [0, 0, 0]
    try:
        place = common.Place(name, prefix)
        module.check(place)
        outcome.versions, outcome.text = place.versions, "passed: " + "; ".join(place.told)
        counts[0] = 1
    except common.Skip as reason:
        outcome.text = f"not tried: {reason}"
        counts[2] = 1
    except common.Failure as failure:
        outcome.versions, outcome.text = place.versions, "failed: " + str(failure).splitlines()[0]
        common.say(str(failure))
        counts[1] = 1
    print(f"{name}: {outcome.text} ({time.monotonic() - begun:.0f} s)", flush=True)
    return counts, outcome


def record(outcomes):
    rows = {}
    if RECORD.exists():
        for line in RECORD.read_text().splitlines():
            if match := re.match(r"\| (\w+) \| .* \| [\d-]+ \|$", line):
                rows[match[1]] = line
    rows.update((outcome.name, outcome.row()) for outcome in outcomes)
    RECORD.write_text(HEAD + "".join(f"{rows[name]}\n" for name in ORDER if name in rows))


def main():
    parser = argparse.ArgumentParser(description="programs of others on Tern")
    parser.add_argument("--mpi", type=pathlib.Path, default=common.ROOT / "build", help="installation (default: build)")
    parser.add_argument("--record", action="store_true", help="write docs/programs.md")
    parser.add_argument("name", nargs="*", help=f"which (default: all of {', '.join(ORDER)})")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.name if name not in ORDER]
    if unknown:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(ORDER)}")
    os.environ.pop("MAKEFLAGS", None)
    sys.path.insert(0, str(HERE))
    total, outcomes = [0, 0, 0], []
    for name in arguments.name or ORDER:
        counts, outcome = attempt(name, arguments.mpi)
        total = [a + b for a, b in zip(total, counts)]
        outcomes.append(outcome)
    if arguments.record:
        record(outcomes)
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
