#!/usr/bin/env python3
"""What valgrind reports of a program that does nothing wrong: nothing.

memcheck must know that received memory is initialised, also where a peer has written it
(process_vm_writev). Without valgrind the cases are skipped, unless TERN_TEST_REQUIRE names it (a list of words): continuous integration does.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Name, tool with its options, arguments of the program, settings.
CASES = [
    ("memcheck", ["memcheck", "--undef-value-errors=yes"], [], {}),
    ("memcheck, threads", ["memcheck", "--undef-value-errors=yes"], ["threads"], {}),
    ("memcheck, copied twice", ["memcheck", "--undef-value-errors=yes"], [], {"TERN_SINGLE_COPY": "0"}),
]
LIMIT_S = 300


def run(prefix, program, folder, case):
    """What is wrong, or None."""
    name, tool, arguments, settings = case
    log = pathlib.Path(folder) / f"{re.sub('[^a-z]', '-', name)}.%p"
    command = [prefix / "bin" / "mpiexec", "-n", "2", "valgrind", f"--tool={tool[0]}", *tool[1:], "--error-exitcode=97",
               f"--log-file={log}", program, *arguments]
    done = subprocess.run([str(word) for word in command], env={**os.environ, **settings}, capture_output=True,
                          text=True, errors="replace", timeout=LIMIT_S)
    if done.returncode == 0 and "test passed" in done.stdout:
        return None
    reports = [file.read_text(errors="replace")[:4000] for file in pathlib.Path(folder).glob(log.name.replace("%p", "*"))]
    return "\n".join([f"exit code {done.returncode}", done.stderr[-2000:], *reports])


def main():
    prefix = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    if not shutil.which("valgrind"):
        required = "valgrind" in os.environ.get("TERN_TEST_REQUIRE", "").replace(",", " ").split()
        count = f"{len(CASES)} failed, 0 skipped" if required else f"0 failed, {len(CASES)} skipped"
        print(f"valgrind.py: valgrind is missing\n0 passed, {count}")
        return int(required)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run([prefix / "bin" / "mpicc", "-O1", "-g", "-o", program, ROOT / "tests" / "valgrind.c", "-lpthread"],
                       check=True)
        for case in CASES:
            try:
                wrong = run(prefix, program, folder, case)
            except subprocess.TimeoutExpired:
                wrong = f"no end after {LIMIT_S} s"
            failed += wrong is not None
            print(f"{case[0]}: {'ok' if wrong is None else wrong}", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
