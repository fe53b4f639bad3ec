"""How many tests of mpi4py's suite run, are skipped and fail, by module and number of ranks.

counts.txt has Tern's, from which a run must not fall back; peers.txt those of other libraries, which were run once.
"""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent


class Counts:
    """How many tests a module runs and how many of them it skips, by module and number of ranks."""

    PATH = HERE / "counts.txt"
    HEAD = (
        "# What each module of mpi4py's suite runs on Tern: module, ranks, tests run, tests skipped.\n"
        "# Written by `run.py --record`; see there.\n"
    )

    def __init__(self):
        self.known, self.seen = {}, {}
        if self.PATH.exists():
            for line in self.PATH.read_text(encoding="utf-8").splitlines():
                if line and not line.startswith("#"):
                    module, *numbers = line.split()
                    ranks, ran, skipped = map(int, numbers)
                    self.known[module, ranks] = ran, skipped

    def complaint(self, module, ranks, ran, skipped):
        """What is wrong with these counts, if anything."""
        self.seen[module, ranks] = ran, skipped
        if (module, ranks) not in self.known:
            return f"{module}: {ran} tests run and {skipped} skipped, but counts.txt does not say how many to expect"
        expected, left = self.known[module, ranks]
        if ran < expected or skipped > left:
            return f"{module}: {ran} tests run and {skipped} skipped; expected {expected} and {left} (counts.txt)"
        return None

    def record(self):
        """Keeps what is known of modules and ranks that this run left out."""
        lines = [f"{m} {n} {ran} {left}\n" for (m, n), (ran, left) in sorted((self.known | self.seen).items())]
        self.PATH.write_text(self.HEAD + "".join(lines), encoding="utf-8")


class Peers:
    """What came of the suite on other libraries: tests run, skipped, and the names of those that failed. A module that a
    rank did not end has run nothing, and what is named is the module."""

    PATH = HERE / "peers.txt"
    HEAD = (
        "# What each module of mpi4py's suite runs on other libraries: library, module, ranks, tests run, tests skipped, tests that\n"
        "# fail; of a module that did not end 0, 0 and its name.\n"
        "# Written by `run.py --mpi PREFIX --record`; see there.\n"
    )

    def __init__(self):
        self.known = {}
        if self.PATH.exists():
            for line in self.PATH.read_text(encoding="utf-8").splitlines():
                if line and not line.startswith("#"):
                    library, module, ranks, ran, skipped, *failed = line.split()
                    self.known[library, module, int(ranks)] = int(ran), int(skipped), failed

    def note(self, library, module, ranks, ran, skipped, failed):
        """Takes in the outcome of a module; of `failed` what unittest prints behind FAIL and ERROR."""
        names = sorted({text.split("(")[-1].split(")")[0].split(" ")[0].rstrip(":") for text in failed})
        self.known[library, module, ranks] = ran, skipped, names

    def record(self):
        """Keeps what is known of libraries, modules and ranks that this run left out."""
        lines = [" ".join(map(str, [*key, ran, left, *names])) + "\n" for key, (ran, left, names) in sorted(self.known.items())]
        self.PATH.write_text(self.HEAD + "".join(lines), encoding="utf-8")
