"""What the programs in Python here share that measure between namespaces: programs compiled, hosts that namespaces stand for, jobs on
them, and plots of text."""

import json
import math
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent / "scripts" / "hosts.sh"
# Files of one program alone, besides that of its name.
FILES = {"kernels": ("kernel_cg", "kernel_mg", "kernel_lu", "kernel_smg", "kernel_radix")}
# Seconds that a job may take.
LIMIT = 600
# What a plot is wide, in characters between its ends, and in how many parts.
WIDTH, PARTS = 48, 4


def processor():
    """As lscpu names it: models of virtual machines often have no name of their own."""
    told = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    if "model name" not in told:
        return platform.machine()
    return f"{told['model name']} (family {told.get('cpu family', '–')}, model {told.get('model', '–')})"


def machine():
    return f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}"


def compiled(mpicc, scratch, program, *others):
    """A program of this folder, with what all have in common and `others`."""
    binary = scratch / program
    if not binary.exists():
        sources = [HERE / f"{name}.c" for name in (program, *FILES.get(program, ()), *others, "bench", "stats")]
        subprocess.run([mpicc, "-O2", "-falign-loops=64", "-o", binary, *sources, "-lm"], check=True)
    return binary


class Hosts:
    """Namespaces in a block of `with`. Where they cannot be made the program ends as a test that is left out."""

    def __init__(self, name, count, mtu=1500):
        self.name, self.count, self.mtu = name, count, mtu
        self.names = [f"10.77.31.{k}" for k in range(1, count + 1)]
        self.reach = f"{SCRIPT} reach {name}"

    def __enter__(self):
        made = subprocess.run([str(SCRIPT), "make", self.name, str(self.count), str(self.mtu)], capture_output=True, text=True)
        if made.returncode != 0:
            print(made.stdout.strip() or made.stderr.strip(), file=sys.stderr)
            sys.exit(made.returncode)
        return self

    def __exit__(self, *_):
        subprocess.run([str(SCRIPT), "remove", self.name], check=True)

    def tern(self, build, ranks):
        """What starts as many ranks on each host by Tern, the first of them on the first."""
        return [*self.inside(), build / "bin" / "mpiexec", "--launcher", self.reach, "--hosts", ",".join(self.names),
                "-ppn", ranks // self.count, "-n", ranks]

    def inside(self):
        return ["ip", "netns", "exec", f"{self.name}1"]


def points(words, environment, what):
    """Those that a job has printed: benchmark, variant and size to value and unit."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT, env=dict(os.environ, **environment))
    if done.returncode != 0:
        sys.exit(f"{what} ends with {done.returncode}\n{done.stdout}{done.stderr}")
    read = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {(point["bench"], point["variant"], point["size"]): (point["value"], point["unit"]) for point in read}


class Scale:
    """Where a value stands in a plot: a part of its width, what is written at its parts, and the part at which nothing is gained or
    lost."""

    def __init__(self, place, marks, origin):
        self.place, self.marks, self.origin = place, marks, origin


def ratios(largest):
    """From 1 / largest to largest, by logarithms; `largest` is a square."""
    root = math.isqrt(largest)
    return Scale(lambda ratio: (1 + math.log(ratio, largest)) / 2, (f"1/{largest}", f"1/{root}", "1", f"{root}", f"{largest}"), 0.5)


# From none to all, in per cent.
SHARES = Scale(lambda share: share / 100, ("0", "25", "50", "75", "100"), 0)


def plotted(values, scale):
    """A line of a plot: a letter for each value at its place, beside others that it meets."""
    line = ["·" if at % (WIDTH // PARTS) == 0 else " " for at in range(WIDTH + 1)]
    line[round(WIDTH * scale.origin)] = "|"
    free = set(range(len(line)))
    for letter, value in values:
        wanted = WIDTH * max(0, min(1, scale.place(value)))
        at = min(free, key=lambda place: abs(place - wanted))
        free.remove(at)
        line[at] = letter
    return "".join(line)


def plot(title, lines, scale):
    """Lines of a label and letters with their values, below the scale."""
    wide = max(len(label) for label, _ in lines) + 2
    marks = "".join(mark.ljust(WIDTH // PARTS) for mark in scale.marks)
    drawn = [f"{label:{wide}}{plotted(values, scale)}" for label, values in lines]
    print("\n".join(["\n```text", title, *(line.rstrip() for line in [" " * wide + marks, *drawn]), "```"]), flush=True)
