"""PnetCDF, files of netCDF written by many ranks: non-contiguous accesses of all kinds by MPI-IO, from C, C++ and Fortran."""

import re

from common import Failure

DESCRIPTION = ("its `make check` on 1 rank and `make ptests` on 2 to 10, with burst buffers and subfiling: C, C++, Fortran 77 and 90; "
               "its own tools compare the files")


def library(place):
    tree = place.debian_source("pnetcdf")
    facts = (place.versions["pnetcdf"], place.prefix)
    if not place.done("pnetcdf", *facts):
        # Its source package has no configure script, and libtoolize is not installed: it knows its files by where Debian has them.
        usr = place.debian_packages("libtool", "libltdl-dev")
        libtoolize = place.work / "libtoolize"
        libtoolize.write_text((usr / "bin" / "libtoolize").read_text().replace('"/usr/share', f'"{usr / "share"}'))
        libtoolize.chmod(0o755)
        place.build("autoreconf", "-i", "-f", cwd=tree, LIBTOOLIZE=str(libtoolize), ACLOCAL_PATH=str(usr / "share" / "aclocal"))
        fortran = "-O0 -w -fallow-argument-mismatch -fallow-invalid-boz"
        place.build("./configure", f"--with-mpi={place.prefix}", "--enable-burst-buffering", "--enable-subfiling",
                    "CFLAGS=-O1 -w", "CXXFLAGS=-O0 -w", f"FFLAGS={fortran}", f"FCFLAGS={fortran}", cwd=tree)
        place.build("make", cwd=tree)
        place.build("make", "tests", cwd=tree)
        place.mark("pnetcdf", *facts)
    return tree


def check(place):
    tree = library(place)
    said = place.build("make", "-k", "check", cwd=tree, accept=(0, 2))
    counts = {word: sum(map(int, re.findall(rf"^# {word}: +(\d+)", said, flags=re.M))) for word in ("PASS", "FAIL", "ERROR")}
    if counts["FAIL"] or counts["ERROR"] or not counts["PASS"]:
        raise Failure(f"make check: {counts}\n{said[-4000:]}")
    place.told.append(f"make check ({counts['PASS']} tests)")
    said = place.build("make", "ptests", cwd=tree)
    passed, failed = len(re.findall(r"-+ pass\b", said)), re.findall(r"^.*-+ fail.*$", said, flags=re.M)
    if failed or not passed:
        raise Failure(f"make ptests: {passed} passed, {failed}\n{said[-4000:]}")
    place.told.append(f"make ptests ({passed} runs on 2 to 10 ranks)")
