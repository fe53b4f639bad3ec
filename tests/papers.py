#!/usr/bin/env python3
"""The papers' tables and the oracle's in virtual time: every row within its bound, whatever is recorded; and as
crates/tern/src/sim/reproduce/tables.md has them, which --record writes anew, also where a row is further off than allowed.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDED = ROOT / "crates" / "tern" / "src" / "sim" / "reproduce" / "tables.md"
OUT = ROOT / "build" / "sim" / "short"


def main():
    tern = ROOT / "build" / "bin" / "tern"
    if not tern.exists():
        sys.exit(f"papers.py: {tern} does not exist: make build")
    (OUT / "results.md").unlink(missing_ok=True)
    process = subprocess.run([tern, "sim", "reproduce", "--short", "--out", OUT], stdout=subprocess.DEVNULL)
    if not (OUT / "results.md").exists():
        return 1
    found = (OUT / "results.md").read_text(encoding="utf-8").rstrip() + "\n"
    if "--record" in sys.argv[1:]:
        RECORDED.write_text(found, encoding="utf-8")
        return process.returncode
    found, recorded = found.splitlines(), RECORDED.read_text(encoding="utf-8").splitlines()
    changed = [at for at, (is_now, was) in enumerate(zip(found, recorded), 1) if is_now != was]
    for at in changed[:20]:
        print(f"line {at} of tables.md: `make snapshots` writes it anew\n  is  {found[at - 1]}\n  was {recorded[at - 1]}")
    if len(found) != len(recorded):
        print(f"{len(found)} lines, and {len(recorded)} recorded")
    return 1 if changed or len(found) != len(recorded) else process.returncode


if __name__ == "__main__":
    sys.exit(main())
