#!/usr/bin/env python3
"""Writes docs/mpi4py.md: what mpi4py's suite runs, skips and fails on Tern and on other libraries, module by module.

From counts.txt, exceptions.txt and peers.txt, which run.py writes with --record. `--check` says whether the page is what they say.
"""

import pathlib
import sys

from counts import HERE, Counts, Peers

PAGE = HERE.parent.parent / "docs" / "mpi4py.md"
RANKS = (1, 2, 3, 4)
NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
HEAD = """# mpi4py's suite, module by module

Tests run / skipped, and how many of them fail, on 1, 2, 3 and 4 ranks; one figure where all four are the same. `–`: not run; `†`: a rank
did not end the module. Written by `tests/mpi4py/table.py`; the figures come from `tests/mpi4py/run.py --record`, those of other libraries
from `run.py --mpi PREFIX --record`, once, on a machine with fewer cores than ranks and 30 s for each module. On Tern nothing fails:
a module that runs fewer tests or skips more than here is a failure of `make test`.

"""


def cell(found):
    """One outcome: (run, skipped, failed names), or None."""
    if found is None:
        return "–"
    ran, skipped, failed = found
    if ran == 0 and failed:
        return "†"
    return f"{ran}/{skipped}" + (f" **{len(failed)}**" if failed else "")


def row(cells):
    return cells[0] if len(set(cells)) == 1 else "; ".join(cells)


def page():
    tern, peers = Counts().known, Peers().known
    libraries = [name for name in NAMES if any(key[0] == name for key in peers)]
    modules = sorted({m for m, _ in tern} | {m for _, m, _ in peers})
    lines = [HEAD, "| module | Tern | " + " | ".join(NAMES[name] for name in libraries) + " |\n"]
    lines.append("| --- " * (2 + len(libraries)) + "|\n")
    for module in modules:
        own = [cell((*tern[module, n], []) if (module, n) in tern else None) for n in RANKS]
        others = [[cell(peers.get((name, module, n))) for n in RANKS] for name in libraries]
        lines.append(f"| {module} | " + " | ".join(map(row, [own, *others])) + " |\n")
    lines += ["\n## Left out, or skipped as a whole, on Tern\n\n"]
    listed = (HERE / "exceptions.txt").read_text(encoding="utf-8").splitlines()
    lines += [f"- {line}\n" for line in listed if line and not line.startswith("#")]
    lines += ["\n## What fails on the others\n\n"]
    broken = {}
    for (name, _, ranks), (_, _, failed) in sorted(peers.items()):
        for test in failed:
            broken.setdefault((name, test), []).append(str(ranks))
    lines += [f"- {NAMES[name]}, {', '.join(ranks)} ranks: `{test}`\n" for (name, test), ranks in sorted(broken.items())]
    return "".join(lines)


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("1 passed, 0 failed" if same else "docs/mpi4py.md is not what the counts say: tests/mpi4py/table.py\n0 passed, 1 failed")
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
