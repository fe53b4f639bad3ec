#!/usr/bin/env python3
"""The symbols of Debian's libibverbs1 and librdmacm1 with their versions, by release, as symbols.txt has them.

`symbols.py RELEASE=FOLDER…` writes it anew, from folders into which the packages of these releases were unpacked, as
`mmdebstrap --variant=extract --include=libibverbs1,librdmacm1 RELEASE FOLDER` does it."""

import pathlib
import re
import subprocess
import sys

LIBRARIES = ["libibverbs.so.1", "librdmacm.so.1"]
RECORD = pathlib.Path(__file__).with_name("symbols.txt")
HEAD = "# What Debian's libibverbs1 and librdmacm1 define: releases, version, names (symbols.py). What is bound to IBVERBS_1.0 beside a\n" \
    "# newer version is left out: it has the structures of 2006.\n"


def symbols(library):
    """What a library defines, with versions; what is bound to IBVERBS_1.0 beside a newer version has the structures of 2006."""
    out = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    defined = [line.split()[-2:] for line in out.splitlines() if "*UND*" not in line and re.search(r"(IBVERBS|RDMACM)_", line)]
    # Versions of which nothing is the default stand in parentheses, too, in a library that has older ones beside newer ones.
    return {(version.strip("()"), name) for version, name in defined if version != "(IBVERBS_1.0)"}


def recorded():
    """By release: what its libraries define."""
    found = {}
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            releases, version, *names = line.split()
            for release in releases.split(","):
                found.setdefault(release, set()).update((version, name) for name in names)
    return found


def record(folders):
    where = {}
    for release, folder in folders.items():
        for library in LIBRARIES:
            for symbol in symbols(next(pathlib.Path(folder).rglob(library))):
                where.setdefault(symbol, []).append(release)
    lines = {}
    for (version, name), releases in sorted(where.items()):
        lines.setdefault((",".join(releases), version), []).append(name)
    text = "".join(f"{releases} {version} {' '.join(names)}\n" for (releases, version), names in lines.items())
    RECORD.write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    record(dict(word.split("=") for word in sys.argv[1:]))
