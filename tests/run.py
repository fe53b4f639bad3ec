#!/usr/bin/env python3
"""Compiles and runs the C conformance programs under tests/c.

A program passes when its exit code is the expected one (0), rank 0 printed
"test passed" (only asked for when the expected exit code is 0), and standard
error matches what it declares. Directives stand in the program's comments:

    // np: 2,4            numbers of ranks (the intersection with --np is run)
    // np: 2+             at least this many ranks
    // args: a b          arguments; each such line is a run of its own
    // env: NAME=VALUE    environment of the run (may stand several times)
    // expect-exit: 3     exit code of mpiexec ("nonzero": any but 0)
    // expect-stderr: RE  regular expression found on standard error
    // expect-stdout: RE  the same for standard output
    // timeout: 120       seconds instead of --timeout
    // memory: 6          skipped where less than so many GiB are available
    // not-on: mpich (reason)   skipped with this library
    // one-host: reason   skipped with --two-hosts
    // connections: reason   skipped with --two-hosts where TERN_TRANSPORT names datagrams

A directive that holds for one library only names it: `expect-stderr[tern]: …`.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import two_hosts

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DIRECTIVE = re.compile(
    r"^\s*(?://|\*)\s*(np|args|env|expect-exit|expect-stderr|expect-stdout|timeout|memory|not-on|one-host|connections)"
    r"(?:\[(\w+)\])?:\s*(.*?)\s*$"
)
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
CLOSING = "test passed"
# Seconds that mpiexec has for saying what the ranks of a run without end wait for, and for ending them.
TO_SAY = 10


# Runs that have not ended: jobs in process groups of their own.
RUNNING = set()


def end(number, _):
    """This script is told to end: so are its jobs, which would go on without it."""
    for process in list(RUNNING):
        process.send_signal(signal.SIGTERM)
    os._exit(128 + number)


class Library:
    """An MPI installation: how it is called, and its compiler and launcher."""

    def __init__(self, prefix, name, mpicc=None, abi=None, two_hosts=False):
        self.prefix = pathlib.Path(prefix).resolve()
        self.abi, self.two_hosts = abi, two_hosts
        binaries = self.prefix / "bin"
        self.name = name or self.guess(binaries)
        standard = binaries / "mpicc_abi"
        self.mpicc = pathlib.Path(mpicc) if mpicc else standard if standard.exists() else binaries / "mpicc"
        self.mpiexec = binaries / "mpiexec"
        for tool in (self.mpicc, self.mpiexec):
            if not tool.exists():
                sys.exit(f"run.py: {tool} does not exist: build first, or name a library with --mpi")

    @staticmethod
    def guess(binaries):
        if (binaries / "mpichversion").exists():
            return "mpich"
        return "ompi" if (binaries / "ompi_info").exists() else "tern"

    def lacking(self, complaint):
        """What names of MPI the header of another library lacks, if that is all the compiler complains of."""
        unknown = set(re.findall(r"[‘']P?(MPI_\w+)['’] undeclared|implicit declaration of function [‘']P?(MPI_\w+)['’]"
                                 r"|unknown type name [‘']P?(MPI_\w+)['’]", complaint))
        names = {name for found in unknown for name in found if name}
        own = set(re.findall(r"\bMPI_\w+", (ROOT / "include" / "mpi.h").read_text(encoding="utf-8")))
        if not (self.abi and names and names <= own):
            return None
        return Lacking(sorted(names))

    def launch(self, ranks, program, arguments):
        if self.two_hosts and ranks > 1:
            return two_hosts.command(self.mpiexec, ranks, program, *arguments)
        extra = ["--allow-run-as-root", "--oversubscribe"] if self.name == "ompi" else []
        extra += ["--abi", self.abi] if self.abi else []
        return [str(self.mpiexec), *extra, "-n", str(ranks), str(program), *arguments]


class Lacking:
    """Why a program cannot be compiled with an older header: it is left out."""

    def __init__(self, names):
        self.reason = "its header lacks " + ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def available_gib():
    """Memory that programs can have without others losing theirs."""
    kib = re.search(r"^MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(kib.group(1)) / (1 << 20)


class Program:
    """One C file with its directives."""

    def __init__(self, source, library, out):
        self.source = source
        self.name = str(source.relative_to(HERE / "c").with_suffix(""))
        self.binary = out / self.name
        self.library = library
        self.directives = {}
        for line in source.read_text(encoding="utf-8").splitlines():
            if match := DIRECTIVE.match(line):
                key, only, value = match.groups()
                if only in (None, library.name):
                    self.directives.setdefault(key, []).append(value)

    def first(self, key, default=None):
        # A directive for this library comes before one for all: the last one wins.
        return self.directives.get(key, [default])[-1]

    def skip_reason(self):
        for value in self.directives.get("not-on", []):
            name, _, reason = value.partition(" ")
            if name == self.library.name:
                return reason.strip("() ") or "not on this library"
        if (needed := float(self.first("memory", 0))) > 0 and needed > (left := available_gib()):
            return f"needs {needed:.0f} GiB of memory, of which {left:.1f} are available"
        if not self.library.two_hosts:
            return None
        over_datagrams = os.environ.get("TERN_TRANSPORT", "rc") != "rc"
        return self.first("one-host") or (self.first("connections") if over_datagrams else None)

    def rank_counts(self, wanted):
        text = self.first("np")
        if text is None:
            return wanted
        if text.endswith("+"):
            return [n for n in wanted if n >= int(text[:-1])]
        own = [int(n) for n in text.split(",")]
        return [n for n in wanted if n in own]

    def argument_lists(self):
        return [shlex.split(line) for line in self.directives.get("args", [""])]

    def environment(self):
        pairs = (value.partition("=") for value in self.directives.get("env", []))
        return {name: value for name, _, value in pairs}

    def compile(self):
        """Returns the compiler's complaint, or what its header is lacking, or None."""
        newest = max(self.source.stat().st_mtime, *(h.stat().st_mtime for h in (HERE / "c").glob("*.h")))
        if self.binary.exists() and self.binary.stat().st_mtime >= newest:
            return None
        self.binary.parent.mkdir(parents=True, exist_ok=True)
        # What speaks another ABI is compiled once for each: quickly, and so without what the compiler needs to see that a buffer is written.
        more = ["-O0", "-g0", "-Wno-maybe-uninitialized"] if self.library.abi else ["-O1", "-g"]
        # Open MPI's header has small numbers for addresses, of which compilers think that something is read there.
        more += ["-Wno-stringop-overread", "-Wno-stringop-overflow"] if self.library.abi == "openmpi" else []
        command = [str(self.library.mpicc), *WARNINGS, *more, f"-I{HERE / 'c'}", str(self.source)]
        # Another run of this script may be at the same.
        made = self.binary.with_suffix(f".{os.getpid()}")
        command += ["-o", str(made), "-lpthread", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return self.library.lacking(done.stderr) or done.stdout + done.stderr
        made.replace(self.binary)
        return None


class Case:
    """One run of a program: a number of ranks, an argument list, and settings, before which go those that the program names."""

    def __init__(self, program, ranks, arguments, settings=()):
        self.program, self.ranks, self.arguments, self.settings = program, ranks, arguments, settings
        self.label = " ".join([*settings, f"{program.name} -n {ranks}", *arguments])

    def run(self, timeout):
        """Returns (passed, explanation, seconds)."""
        program = self.program
        limit = float(program.first("timeout", timeout))
        command = program.library.launch(self.ranks, program.binary, self.arguments)
        # Told to end by mpiexec itself, whose ranks then say whom they wait for.
        patience = {"MPIEXEC_TIMEOUT": f"{limit:.0f}"}
        environment = {**os.environ, **patience, **dict(setting.split("=", 1) for setting in self.settings), **program.environment()}
        begun = time.monotonic()
        # Why no session of its own: see Job in hang/support.py.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, cwd=program.binary.parent, preexec_fn=os.setpgrp,
        )
        RUNNING.add(process)
        try:
            out, err = process.communicate(timeout=limit + TO_SAY)
        except subprocess.TimeoutExpired:
            out, err = stop(process)
        finally:
            RUNNING.discard(process)
        seconds = time.monotonic() - begun
        if seconds >= limit:
            return False, f"no end after {limit:.0f} s\n{tail(out, 40)}{tail(err, 40)}", seconds
        complaint = self.judge(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
        if complaint is None:
            return True, "", seconds
        again = " ".join(shlex.quote(word) for word in [*self.settings, *command])
        return False, f"{complaint}\n{tail(out)}{tail(err)}  again: {again}", seconds

    def judge(self, code, out, err):
        expected = self.program.first("expect-exit", "0")
        if expected == "nonzero":
            if code == 0:
                return "exit code 0, expected a failure"
        elif code != int(expected):
            return f"exit code {code}, expected {expected}"
        elif code == 0 and CLOSING not in out:
            return f"rank 0 did not print \"{CLOSING}\""
        for key, text in (("expect-stderr", err), ("expect-stdout", out)):
            for pattern in self.program.directives.get(key, []):
                if not re.search(pattern, text):
                    return f"{key}: nothing matches {pattern!r}"
        return None


def stop(process):
    """Ends a run that mpiexec has not ended."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            return process.communicate(timeout=patience)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue
    return b"", b""


def tail(output, lines=12):
    text = output.decode(errors="replace").splitlines()[-lines:]
    return "".join(f"    {line}\n" for line in text)


def options():
    parser = argparse.ArgumentParser(description="run the C conformance programs")
    parser.add_argument("filter", nargs="*", help="run programs whose name contains one of these")
    parser.add_argument("--without", action="append", default=[], help="but none whose name contains this")
    parser.add_argument("--mpi", default=str(ROOT / "build"), help="prefix of the library (default: build)")
    parser.add_argument("--name", help="name of the library in directives (default: found out)")
    parser.add_argument("--mpicc", help="the compiler of another library, whose programs the library is to run")
    parser.add_argument("--abi", help="the ABI of these programs, as mpiexec takes it")
    parser.add_argument("--np", default="1,2,3,4,7", help="numbers of ranks")
    parser.add_argument("--timeout", type=float, default=60, help="seconds per run")
    parser.add_argument("-j", "--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="runs at once")
    parser.add_argument("--two-hosts", action="store_true", help="half of the ranks in each of two network namespaces (Tern only)")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line per run")
    parser.add_argument("--list", action="store_true", help="only name the runs")
    return parser.parse_args()


class Report:
    """Counts, and prints failures as they happen."""

    def __init__(self, verbose, total):
        self.verbose, self.total, self.done = verbose, total, 0
        self.passed, self.failed, self.skipped = 0, [], 0
        self.terminal = sys.stdout.isatty()

    def result(self, label, passed, text, seconds):
        self.done += 1
        if passed:
            self.passed += 1
        else:
            self.failed.append(label)
        if not passed or self.verbose:
            self.line(f"{'ok    ' if passed else 'FAILED'} {label} ({seconds:.1f} s) {text}")
        elif self.terminal:
            print(f"\r\x1b[K[{self.done}/{self.total}] {label}", end="", flush=True)

    def skip(self, label, reason):
        self.skipped += 1
        self.line(f"skipped {label}: {reason}")

    def line(self, text):
        print(f"{chr(13) + chr(27) + '[K' if self.terminal else ''}{text.rstrip()}", flush=True)

    def close(self):
        if self.failed:
            self.line("failed: " + "; ".join(self.failed))
        self.line(f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def select(arguments, library):
    # A program finds the library whose compiler made it: each has its own.
    where = None if library.prefix == ROOT / "build" else hashlib.sha256(bytes(library.prefix)).hexdigest()[:8]
    out = ROOT / "build" / "tests" / "-".join(filter(None, [library.name, library.abi, where]))
    sources = sorted((HERE / "c").rglob("*.c"))
    programs = [Program(source, library, out) for source in sources]
    # A word that matches nothing would leave out in silence what it was meant to run.
    unmatched = [w for w in [*arguments.filter, *arguments.without] if not any(w in p.name for p in programs)]
    if unmatched:
        sys.exit(f"run.py: no program has {' or '.join(unmatched)} in its name")
    if arguments.filter:
        programs = [p for p in programs if any(f in p.name for f in arguments.filter)]
    programs = [p for p in programs if not any(w in p.name for w in arguments.without)]
    if not programs:
        sys.exit("run.py: no program matches")
    return programs


def main():
    arguments = options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    library = Library(arguments.mpi, arguments.name, arguments.mpicc, arguments.abi, arguments.two_hosts)
    wanted = [int(n) for n in arguments.np.split(",")]
    programs = select(arguments, library)
    cases, skips = [], []
    for program in programs:
        if reason := program.skip_reason():
            skips.append((program.name, reason))
            continue
        lists = program.argument_lists()
        cases += [Case(program, n, a) for n in program.rank_counts(wanted) for a in lists]
    if arguments.list:
        print("\n".join(case.label for case in cases))
        return 0
    if reason := arguments.two_hosts and two_hosts.lacking(library.mpiexec):
        return two_hosts.without(reason, len(cases))
    report = Report(arguments.verbose, len(cases))
    for name, reason in skips:
        report.skip(name, reason)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        used = list(dict.fromkeys(case.program for case in cases))
        complaints = dict(zip(used, pool.map(Program.compile, used)))
    for program, complaint in complaints.items():
        if isinstance(complaint, Lacking):
            report.skip(program.name, complaint.reason)
        elif complaint:
            report.result(program.name, False, f"does not compile\n{complaint}", 0)
    cases = [case for case in cases if not complaints[case.program]]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(case.run, arguments.timeout): case for case in cases}
        for future in concurrent.futures.as_completed(running):
            report.result(running[future].label, *future.result())
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
