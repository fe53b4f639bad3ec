#!/usr/bin/env python3
"""Packs the installed tree as a wheel, `tern-mpi`: what a prefix has goes into the prefix of the virtual environment, so
that mpicc and mpiexec are on PATH where it is active. Nothing of it is compiled for one Python.

mpi4py's own wheel looks for `libmpi.so.12` in `lib` of the environment, which the tree does not have: it would be taken for
MPICH's by whoever links. Here it leads to the one in `lib/tern/mpich`.

The tag says the oldest glibc that has all the symbols the binaries want (PEP 600); `--manylinux 2.34` refuses to make a
wheel that wants a newer one.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import stat
import tempfile
import time
import zipfile

import tree

NAME = "tern_mpi"
# Archives have no links: what is one in the tree is a file that leads to the other.
LINKED = {".so": "/* GNU ld script */\nINPUT({target})\n",
          "mpirun": '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/{target}" "$@"\n'}


def metadata():
    readme = (tree.ROOT / "README.md").read_text()
    # Links into the repository lead nowhere from a package index.
    readme = re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", readme)
    fields = ["Metadata-Version: 2.4", "Name: tern-mpi", f"Version: {tree.version()}", f"Summary: {tree.SUMMARY}",
              "License-Expression: Apache-2.0 OR MIT", "License-File: LICENSE-APACHE", "License-File: LICENSE-MIT",
              "Classifier: Operating System :: POSIX :: Linux", "Classifier: Topic :: System :: Distributed Computing",
              "Requires-Python: >=3.6", "Description-Content-Type: text/markdown"]
    return "\n".join(fields) + "\n\n" + readme


def contents(path):
    """The bytes of a file of the tree, and whether it can be executed."""
    if path.is_symlink():
        target = path.readlink().name
        stub = LINKED.get(path.suffix) or LINKED.get(path.name)
        if stub:
            return stub.format(target=target).encode(), path.suffix != ".so"
    return path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR)


class Wheel:
    """An archive and the list of what is in it."""

    def __init__(self, path, info):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info, self.record = info, []
        self.date = time.gmtime(max(tree.when(), 315532800))[:6]

    def add(self, name, data, executable=False):
        entry = zipfile.ZipInfo(name, self.date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        name = f"{self.info}/RECORD"
        self.add(name, "\n".join([*self.record, f"{name},,", ""]).encode())
        self.archive.close()


def make(out, limit):
    with tempfile.TemporaryDirectory(prefix="tern-wheel-") as scratch:
        prefix = tree.install(pathlib.Path(scratch))
        tree.run(tree.ROOT / "scripts" / "stand-in.sh", prefix / "lib", "libmpi.so.12", "tern/mpich/libmpi.so.12")
        oldest, symbols = tree.glibc(prefix)
        if limit and oldest > limit:
            raise tree.Refused(f"a glibc of at least {oldest[0]}.{oldest[1]} is needed, for {', '.join(symbols)}; a wheel for "
                               f"{limit[0]}.{limit[1]} must be built on a system that has no newer one")
        tag = f"py3-none-manylinux_{oldest[0]}_{oldest[1]}_{tree.machine()}"
        stem = f"{NAME}-{tree.version()}"
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{stem}-{tag}.whl"
        wheel = Wheel(path, f"{stem}.dist-info")
        for file in sorted(prefix.rglob("*")):
            if not file.is_dir():
                data, executable = contents(file)
                wheel.add(f"{stem}.data/data/{file.relative_to(prefix)}", data, executable)
        for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
            wheel.add(f"{wheel.info}/licenses/{licence}", (tree.ROOT / licence).read_bytes())
        wheel.add(f"{wheel.info}/METADATA", metadata().encode())
        about = f"Wheel-Version: 1.0\nGenerator: tern-mpi {tree.version()}\nRoot-Is-Purelib: false\nTag: {tag}\n"
        wheel.add(f"{wheel.info}/WHEEL", about.encode())
        wheel.close()
        return path


def release(text):
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text}: a release of glibc is wanted, as 2.34")
    return int(match[1]), int(match[2])


def main():
    parser = argparse.ArgumentParser(description="pack build/ as a wheel")
    parser.add_argument("--out", type=pathlib.Path, default=tree.ROOT / "build" / "dist", help="where to (default: build/dist)")
    parser.add_argument("--manylinux", type=release, metavar="RELEASE", help="refuse to want a newer glibc than this")
    arguments = parser.parse_args()
    tree.main(lambda: make(arguments.out, arguments.manylinux))


if __name__ == "__main__":
    main()
