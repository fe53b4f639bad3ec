#!/usr/bin/env python3
"""What memory and thread checkers report of a program that does nothing wrong: nothing. Of one that does
something wrong beside its messages they report it.

memcheck must know that received memory is initialised, also where a peer has written it
(process_vm_writev); helgrind and ThreadSanitizer in which order the threads of a rank, and that of the
library, use memory. Without valgrind, or a compiler with ThreadSanitizer whose programs run here, the
cases are skipped, unless TERN_TEST_REQUIRE names `valgrind` or `tsan` (a list of words).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMCHECK, HELGRIND = ["memcheck", "--undef-value-errors=yes"], ["helgrind"]
TSAN = None
# Name, tool with its options, arguments of the program, settings, whether there is something to report.
CASES = [
    ("memcheck", MEMCHECK, [], {}, False),
    ("memcheck, threads", MEMCHECK, ["threads"], {}, False),
    ("memcheck, copied twice", MEMCHECK, [], {"TERN_SINGLE_COPY": "0"}, False),
    *((f"{name}, {how or 'one thread'}", tool, [how] if how else [], {}, how == "race")
      for name, tool in (("helgrind", HELGRIND), ("ThreadSanitizer", TSAN))
      for how in ("", "away", "session", "threads", "handed", "race")),
    ("ThreadSanitizer, copied twice", TSAN, ["away"], {"TERN_SINGLE_COPY": "0"}, False),
]
LIMIT_S = 300
REPORTED = 97


class Build:
    """The program, as it is and for ThreadSanitizer."""

    def __init__(self, prefix, folder):
        self.prefix, self.folder = prefix, pathlib.Path(folder)
        self.plain, self.checked = self.folder / "plain", self.folder / "checked"
        # ThreadSanitizer knows few layouts of memory: it wants its program where it always is.
        self.fixed = ["setarch", "-R"] if shutil.which("setarch") else []

    def compile(self, program, *options):
        command = [self.prefix / "bin" / "mpicc", "-O1", "-g", *options, "-o", program, ROOT / "tests" / "valgrind.c", "-lpthread"]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True)

    def missing(self):
        """What is not there, by the names of TERN_TEST_REQUIRE, with the reason."""
        self.compile(self.plain).check_returncode()
        missing = {} if shutil.which("valgrind") else {"valgrind": "valgrind is missing"}
        if self.compile(self.checked, "-fsanitize=thread").returncode != 0:
            missing["tsan"] = "the compiler has no ThreadSanitizer"
            return missing
        empty = self.folder / "empty"
        (self.folder / "empty.c").write_text("int main(void) { return 0; }\n")
        command = [self.prefix / "bin" / "mpicc", "-fsanitize=thread", "-o", empty, self.folder / "empty.c"]
        subprocess.run([str(word) for word in command], check=True)
        for fixed in (self.fixed, []):
            if subprocess.run([*fixed, str(empty)], capture_output=True).returncode == 0:
                self.fixed = fixed
                return missing
        missing["tsan"] = "programs of ThreadSanitizer do not start here (address space layout)"
        return missing


def run(build, case):
    """What is wrong, or None."""
    name, tool, arguments, settings, wrong = case
    log = build.folder / f"{re.sub('[^a-z]', '-', name.lower())}.%p"
    start = [build.prefix / "bin" / "mpiexec", "-n", "2"]
    environment = {**os.environ, **settings}
    if tool is TSAN:
        command = [*build.fixed, *start, build.checked]
        environment["TSAN_OPTIONS"] = f"exitcode={REPORTED}:log_path={str(log).removesuffix('.%p')}"
    else:
        command = [*start, "valgrind", f"--tool={tool[0]}", *tool[1:], f"--error-exitcode={REPORTED}",
                   f"--log-file={log}", build.plain]
    done = subprocess.run([str(word) for word in [*command, *arguments]], env=environment, capture_output=True, text=True,
                          errors="replace", timeout=LIMIT_S)
    reports = [file.read_text(errors="replace") for file in build.folder.glob(log.name.replace("%p", "*"))]
    if wrong:
        # By each rank, in the function of that name.
        found = [re.search(r"\brace \(valgrind\.c:|#0 race ", report) for report in reports]
        expected = done.returncode == REPORTED and len(found) == 2 and all(found)
    else:
        expected = done.returncode == 0
    if expected and "test passed" in done.stdout:
        return None
    return "\n".join([f"exit code {done.returncode}", done.stderr[-2000:], *(report[:4000] for report in reports)])


def main():
    prefix = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    required = os.environ.get("TERN_TEST_REQUIRE", "").replace(",", " ").split()
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        build = Build(prefix, folder)
        missing = build.missing()
        for case in CASES:
            needed = "tsan" if case[1] is TSAN else "valgrind"
            if needed in missing:
                failed, skipped = failed + (needed in required), skipped + (needed not in required)
                print(f"{case[0]}: {missing[needed]}", flush=True)
                continue
            try:
                wrong = run(build, case)
            except subprocess.TimeoutExpired:
                wrong = f"no end after {LIMIT_S} s"
            passed, failed = passed + (wrong is None), failed + (wrong is not None)
            print(f"{case[0]}: {'ok' if wrong is None else wrong}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
