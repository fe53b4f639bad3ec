#!/usr/bin/env python3
"""Undefined behaviour, by miri: unit tests of the crates with `unsafe`, of modules that need no system.

Skipped without a nightly toolchain with the components miri and rust-src. With --quick without
the modules of `mpi`, which take minutes.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Crate, modules. Crates that forbid `unsafe` have no undefined behaviour. Ranks of `shm` in one process run there, with
# memory that is not shared; single copy, the barrier and files are the kernel's. The collectives, properties of datatypes
# and soft floats of `mpi` take too long under miri.
TESTS = [
    ("shm", ["bytes::tests::lengths", "device::room::tests::all_send", "layout::", "nap::", "owner::", "standby::", "turns::", "watched::"]),
    ("mpi", ["attr::", "codes::", "datatype::", "errhandler::", "group::", "handle::", "info::", "op::"]),
]


def main():
    cargo = [os.environ.get("CARGO", "cargo"), "+nightly", "miri"]
    try:
        found = subprocess.run([*cargo, "--version"], capture_output=True, env={**os.environ, "RUSTUP_AUTO_INSTALL": "0"})
        there = found.returncode == 0
    except OSError:
        there = False
    if not there:
        print("no miri: rustup toolchain install nightly --component miri,rust-src\n0 passed, 0 failed, 1 skipped")
        return 0
    environment = {
        **os.environ,
        # Addresses come from the application as numbers.
        "MIRIFLAGS": "-Zmiri-disable-isolation -Zmiri-permissive-provenance",
        "PROPTEST_CASES": "2",
        "CARGO_TARGET_DIR": str(ROOT / "build" / "miri"),
    }
    quick = "--quick" in sys.argv[1:]
    skipped = ["properties", "op::soft"]
    worst = 0
    for crate, modules in TESTS:
        if crate == "mpi" and quick:
            continue
        command = [*cargo, "test", "-p", crate, "--lib", "--no-fail-fast", "--", *modules]
        command += [word for name in skipped for word in ("--skip", name)]
        worst = max(worst, subprocess.run(command, cwd=ROOT, env=environment).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
