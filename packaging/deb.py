#!/usr/bin/env python3
"""Packs the installed tree as a Debian package, `tern-mpi`, with dpkg-deb alone.

The tree stays together below /usr/lib/TRIPLET/tern, for the wrappers find include and lib beside themselves. What others
look for is reached by alternatives in the groups that Debian's mpich and openmpi have: `mpi` (the compilers), `mpirun` and
`mpi-TRIPLET` (headers and libraries). Its priority is below theirs: who installs it beside another MPI chooses it by
`update-alternatives --set mpirun /usr/bin/mpirun.tern` and the like.
"""

import argparse
import gzip
import pathlib
import subprocess
import tempfile
import time

import tree

PRIORITY = 30
COMPILERS = ["mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77"]
LAUNCHERS = ["mpirun", "mpiexec"]
MAINTAINER = "Tern MPI <tern-mpi@packages.invalid>"
DESCRIPTION = """ Tern implements every function of MPI 5.0 with the standard ABI, that of
 libmpi_abi.so.1, so that programs built with any other library of that ABI run
 on it unmodified.
 It runs on the cores of one host and on several joined by plain Ethernet, and
 says why a message went the way it did.
 .
 This package has the libraries, the compiler wrappers for C, C++ and Fortran,
 and mpiexec.
"""


def triplet():
    """The directory below /usr/lib that Debian has for this machine."""
    return {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}[tree.machine()]


def architecture():
    return {"x86_64": "amd64", "aarch64": "arm64"}[tree.machine()]


def alternatives():
    """Per group: its name, and (link, name, path) of the master and what follows it."""
    lib = f"/usr/lib/{triplet()}"
    programs = {name: [(f"/usr/bin/{name}", name, f"/usr/bin/{name}.tern"),
                       (f"/usr/share/man/man1/{name}.1.gz", f"{name}.1.gz", f"/usr/share/man/man1/{name}.tern.1.gz")]
                for name in COMPILERS + LAUNCHERS}
    yield "mpi", [entry for name in COMPILERS for entry in programs[name]]
    yield "mpirun", [entry for name in LAUNCHERS for entry in programs[name]]
    yield f"mpi-{triplet()}", [
        (f"/usr/include/{triplet()}/mpi", f"mpi-{triplet()}", f"{lib}/tern/include"),
        (f"{lib}/libmpi.so", f"libmpi.so-{triplet()}", f"{lib}/tern/lib/libmpi_abi.so"),
        (f"{lib}/libmpi_abi.so.1", f"libmpi_abi.so.1-{triplet()}", f"{lib}/tern/lib/libmpi_abi.so.1"),
        (f"{lib}/pkgconfig/mpi.pc", f"mpi.pc-{triplet()}", f"{lib}/pkgconfig/tern-mpi.pc")]


def scripts():
    """postinst and prerm."""
    install, remove = "", ""
    for group, (master, *slaves) in alternatives():
        link, _, path = master
        install += f"    update-alternatives --install {link} {group} {path} {PRIORITY}"
        for link, name, target in slaves:
            install += f" \\\n        --slave {link} {name} {target}"
        install += "\n"
        remove += f"    update-alternatives --remove {group} {path}\n"
    yield "postinst", f'#!/bin/sh\nset -e\nif [ "$1" = configure ]; then\n{install}fi\n'
    # The modules that mpifort has made since.
    remove += f"    rm -rf /usr/lib/{triplet()}/tern/lib/tern/fortran\n"
    yield "prerm", f'#!/bin/sh\nset -e\nif [ "$1" = remove ] || [ "$1" = deconfigure ]; then\n{remove}fi\n'


def compressed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text if isinstance(text, bytes) else text.encode(), 9, mtime=0))


def lay(root, prefix):
    """The tree and what is outside of it."""
    home = root / "usr" / "lib" / triplet() / "tern"
    manuals = root / "usr" / "share" / "man"
    for manual in sorted((prefix / "share" / "man").glob("man*/*")):
        stem, section = manual.name.rsplit(".", 1)
        name = f"{stem}.{section}" if stem == "tern" else f"{stem}.tern.{section}"
        compressed(manuals / f"man{section}" / f"{name}.gz", manual.read_bytes())
    tree.run("rm", "-r", prefix / "share" / "man")
    home.parent.mkdir(parents=True)
    tree.run("cp", "-a", prefix, home)
    commands = root / "usr" / "bin"
    commands.mkdir(parents=True)
    for name in COMPILERS + LAUNCHERS:
        (commands / f"{name}.tern").symlink_to(f"../lib/{triplet()}/tern/bin/{name}")
    (commands / "tern").symlink_to(f"../lib/{triplet()}/tern/bin/tern")
    for shared in home.glob("lib/*.so.*"):
        shared.chmod(0o644)
    # Reached by a link elsewhere, so it cannot say where it is relative to itself.
    flags = (home / "lib" / "pkgconfig" / "mpi.pc").read_text().replace("${pcfiledir}/../..", f"/usr/lib/{triplet()}/tern")
    packages = root / "usr" / "lib" / triplet() / "pkgconfig"
    packages.mkdir()
    (packages / "tern-mpi.pc").write_text(flags)


def document(root):
    docs = root / "usr" / "share" / "doc" / "tern-mpi"
    docs.mkdir(parents=True)
    mit = (tree.ROOT / "LICENSE-MIT").read_text()
    said = "\n".join(f" {line}".rstrip() or " ." for line in mit.strip().splitlines())
    (docs / "copyright").write_text(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Tern MPI\n\n"
        "Files: *\nCopyright: 2026 the contributors of Tern MPI\nLicense: Apache-2.0 or MIT\n\n"
        "License: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n\n"
        f"License: MIT\n{said}\n")
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(tree.when()))
    compressed(docs / "changelog.gz", f"tern-mpi ({tree.version()}) unstable; urgency=medium\n\n  * Built from the sources.\n\n"
               f" -- {MAINTAINER}  {date}\n")


def control(root, oldest):
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) // 1024 + 1
    about = root / "DEBIAN"
    about.mkdir()
    fields = {"Package": "tern-mpi", "Version": tree.version(), "Architecture": architecture(), "Section": "science",
              "Priority": "optional", "Maintainer": MAINTAINER, "Installed-Size": size,
              "Depends": f"libc6 (>= {oldest[0]}.{oldest[1]}), libgcc-s1 (>= 4.2)",
              "Recommends": "gcc | c-compiler, libc6-dev | libc-dev",
              "Suggests": "g++ | c++-compiler, gfortran | fortran-compiler, openssh-client", "Description": tree.SUMMARY}
    (about / "control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()) + DESCRIPTION)
    for name, text in scripts():
        (about / name).write_text(text)
        (about / name).chmod(0o755)
    files = sorted(path for path in (root / "usr").rglob("*") if path.is_file() and not path.is_symlink())
    sums = subprocess.run(["md5sum", *(path.relative_to(root) for path in files)], cwd=root, check=True, capture_output=True)
    (about / "md5sums").write_bytes(sums.stdout)


def make(out):
    with tempfile.TemporaryDirectory(prefix="tern-deb-") as scratch:
        scratch = pathlib.Path(scratch)
        prefix = tree.install(scratch / "installed")
        oldest, _ = tree.glibc(prefix)
        root = scratch / "root"
        root.mkdir(mode=0o755)
        lay(root, prefix)
        document(root)
        control(root, oldest)
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"tern-mpi_{tree.version()}_{architecture()}.deb"
        tree.run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path)
        return path


def main():
    parser = argparse.ArgumentParser(description="pack build/ as a Debian package")
    parser.add_argument("--out", type=pathlib.Path, default=tree.ROOT / "build" / "dist", help="where to (default: build/dist)")
    arguments = parser.parse_args()
    tree.main(lambda: make(arguments.out))


if __name__ == "__main__":
    main()
