#!/usr/bin/env python3
"""Every fuzz target, or those that are named, for some time each: from what was new to it before on.

What is found new is kept in build/fuzz/corpus, an input that fails in build/fuzz/artifacts. Skipped without cargo-fuzz and a
nightly toolchain.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUZZ = ROOT / "build" / "fuzz"
# What takes so long, or so much memory, has failed.
LIMITS = ["-timeout=10", "-rss_limit_mb=2048"]


def find(cargo):
    """The targets; none where there is no fuzzer."""
    try:
        environment = {**os.environ, "RUSTUP_AUTO_INSTALL": "0"}
        found = subprocess.run([*cargo, "list"], capture_output=True, text=True, cwd=ROOT / "fuzz", env=environment)
    except OSError:
        return []
    return found.stdout.split() if found.returncode == 0 else []


def run(cargo, target, seconds):
    """Whether a target has survived; says how much it was given."""
    corpus, artifacts = FUZZ / "corpus" / target, FUZZ / "artifacts" / target
    for directory in (corpus, artifacts):
        directory.mkdir(parents=True, exist_ok=True)
    words = [f"-max_total_time={seconds}", "-print_final_stats=1", f"-artifact_prefix={artifacts}/", *LIMITS]
    command = [*cargo, "run", "--target-dir", FUZZ, target, corpus, "--", *words]
    ran = subprocess.run(command, cwd=ROOT / "fuzz", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    done = re.search(r"^Done (\d+) runs in (\d+) second", ran.stdout, re.MULTILINE)
    if ran.returncode == 0 and done:
        print(f"{target}: {done[1]} executions in {done[2]} s", flush=True)
        return True
    print(f"{ran.stdout[-4000:]}\n{target}: failed", flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="all without any")
    parser.add_argument("--seconds", type=int, default=20, help="for each target (20)")
    arguments = parser.parse_args()
    cargo = [os.environ.get("CARGO", "cargo"), "+nightly", "fuzz"]
    targets = find(cargo)
    if not targets:
        print("no fuzzer: cargo install cargo-fuzz, rustup toolchain install nightly\n0 passed, 0 failed, 1 skipped")
        return 0
    if unknown := set(arguments.targets) - set(targets):
        parser.error(f"no such targets: {', '.join(sorted(unknown))}")
    survived = [run(cargo, target, arguments.seconds) for target in arguments.targets or targets]
    print(f"{survived.count(True)} passed, {survived.count(False)} failed")
    return 0 if all(survived) else 1


if __name__ == "__main__":
    sys.exit(main())
