"""MPICH's own test suite, from Debian's source package, built and run on Tern as the suite of a foreign library.

What it asks beyond the standard, or against it, is listed with the reason; everything else has to pass.
"""

import pathlib
import re
import shutil
import time

from common import Failure, say

DESCRIPTION = ("its test/mpi, configured for another library than MPICH and strictly for the standard: attributes, collectives, "
               "communicators, datatypes, errors, files, Fortran (mpif.h, mpi, mpi_f08), groups, infos, one-sided, partitioned, "
               "point-to-point, processes, threads, tools, topologies, on the numbers of ranks that it asks for")
# Functions that MPI 3.0 has removed and parts of the suite still call by their old names.
RENAMED = {
    "MPI_Type_hvector": "MPI_Type_create_hvector", "MPI_Type_hindexed": "MPI_Type_create_hindexed",
    "MPI_Type_struct": "MPI_Type_create_struct", "MPI_Address": "MPI_Get_address",
    "MPI_Errhandler_create": "MPI_Comm_create_errhandler", "MPI_Errhandler_set": "MPI_Comm_set_errhandler",
    "MPI_Errhandler_get": "MPI_Comm_get_errhandler",
}
REMOVED = "calls what MPI 3.0 has removed"
BEYOND = "calls what is MPICH's own"
INTERFACE = "passes scalars where the interfaces of module mpi have arrays"
NOT_INTEGERS = "takes handles for integers, or one kind for another, which they are in MPICH"
# Programs that cannot be compiled.
UNBUILT = {
    "datatype/pack_external": NOT_INTEGERS, "datatype/lbub_oldapi": REMOVED, "errhan/adderr": BEYOND, "mpi_t/qmpi_test": BEYOND,
    "f77/datatype/typecntsf": REMOVED, "f77/datatype/hindex1f": REMOVED, "f90/datatype/hindex1f90": REMOVED,
    "f90/datatype/get_elem_u": REMOVED, "f77/rma/aintf": "declares what mpif.h has to declare",
    "f90/coll/alltoallvf90": INTERFACE, "f90/coll/split_typef90": INTERFACE, "f90/coll/vw_inplacef90": INTERFACE,
    "f90/coll/nonblocking_inpf90": INTERFACE, "f90/profile/profile1f90": "defines names that it imports from module mpi",
    "f08/attr/attrmpi1f08": REMOVED, "f08/attr/baseattrf08": REMOVED, "f08/attr/baseattr2f08": REMOVED,
    "f08/attr/attrlangf08": REMOVED, "f08/io/c2f2ciof90": "does not compile anywhere",
}
CANCEL = "a send that was cancelled may have gone (MPICH expects this failure of itself)"
EXTRA = "an extra state is INTENT(IN), not the address of a variable"
CODE = "of an error another class, with a text, than that of ROMIO"
LENGTHS = "wants ranks that disagree about a collective to be found out (MPICH expects this failure of itself)"
RAISED = "has errors raised on MPI_COMM_WORLD that concern another object, whose error handler is called here"
# Programs that ask for something else than the standard does.
OTHERWISE = {
    "pt2pt/scancel": CANCEL, "pt2pt/pscancel": CANCEL, "pt2pt/cancelrecv": CANCEL, "pt2pt/scancel_unmatch": CANCEL,
    "coll/nonblocking2": NOT_INTEGERS, "coll/nonblocking3": NOT_INTEGERS,
    "threads/pt2pt/mt_improbe_isendrecv": NOT_INTEGERS, "threads/pt2pt/mt_improbe_sendrecv": NOT_INTEGERS,
    "threads/pt2pt/mt_improbe_sendrecv_huge": NOT_INTEGERS,
    "datatype/indexed_misc": "uses a type that it has freed",
    "part/multipart": "reads MPI_ERROR, which is set where a call returns MPI_ERR_IN_STATUS (section 3.2.5)",
    "topo/cartsuball": "gives a grid of no dimensions to rank 0 alone; here, and in Open MPI, each rank is one",
    "topo/dims5": "4 dimensions of 590520 as far apart as Tern's, with more processes at the faces",
    "rma/win_info": "hints that are set when it is too late for them are said to be in force",
    "io/tst_fileview": CODE,
    "f77/pt2pt/greqf": EXTRA, "f90/pt2pt/greqf90": EXTRA, "f08/pt2pt/greqf08": EXTRA,
    "f08/datatype/allctypesf08": REMOVED, "f08/init/baseenvf90": "knows no version 5 of MPI",
    "f77/datatype/allctypesf": REMOVED, "f90/datatype/allctypesf90": REMOVED,
    "f77/init/baseenvf": "knows no version 5 of MPI", "f90/init/baseenvf90": "knows no version 5 of MPI",
    **{f"errors/coll/{which}": LENGTHS for which in (
        "bcastlength", "ibcastlength", "reducelength", "ireducelength", "allreducelength", "iallreducelength", "reduceop", "ireduceop",
        "gatherlength", "igatherlength", "scatterlength", "iscatterlength", "allgatherlength", "iallgatherlength", "alltoalllength")},
    **{f"errors/comm/{which}_nullarg": RAISED for which in ("comm_create", "comm_create_group", "comm_split", "comm_split_type")},
    "errors/attr/keyvalmis": RAISED,
    "errors/pt2pt/truncmsg2": "wants signatures compared that have one length",
    "errors/spawn/connect_timeout_no_accept": "sets MPICH's own bound; Tern's is 180 s, or the info key `timeout`",
}
# What of these would take minutes is not run.
HANGS = {name for name, why in OTHERWISE.items() if why == LENGTHS} | {"errors/spawn/connect_timeout_no_accept"}
# How many times as long as the suite says one run may take: of five ranks with four threads each, on two cores that others use too.
PATIENCE = 5


class Test:
    """One line of a list: a program, ranks, arguments, environment, and how it is judged."""

    def __init__(self, directory, words):
        self.directory, self.program = directory, words[0]
        self.ranks = int(words[1]) if len(words) > 1 else 2
        keys = [word.split("=", 1) for word in words[2:] if "=" in word]
        self.keys = dict(keys)
        self.arguments = [value for key, value in keys if key == "arg"]
        # What begins so tells MPICH's own library something.
        self.environment = dict(value.split("=", 1) for key, value in keys if key == "env" and not value.startswith("MPIR_"))

    def is_standard(self):
        return self.keys.get("strict", "").lower() != "false" and self.keys.get("mpix", "").lower() != "true"

    def name(self):
        return f"{self.directory}/{self.program}"

    def identity(self):
        return (self.name(), self.ranks, *self.arguments, *sorted(self.environment.items()))

    def fails(self, place, tree, abi):
        """What is wrong, or nothing."""
        result = self.keys.get("resultTest", "")
        # Some are to fail, and one of these is to take longer than it may.
        limit = int(self.keys.get("timeLimit", 180)) * (1 if result == "TestErrFatal" else PATIENCE)
        wrong = result in ("TestStatus", "TestErrFatal", "TestStatusNoErrors")
        try:
            said = place.run("mpiexec", "--abi", abi, "-n", self.ranks, f"./{self.program}", *self.arguments, cwd=tree / self.directory,
                             timeout=limit + 30, accept=range(1, 256) if wrong else (0,), MPIEXEC_TIMEOUT=str(limit),
                             **self.environment)
        except Failure as failure:
            return str(failure)
        is_said = re.search(r"^\s*No [Ee]rrors\s*$", said, flags=re.M)
        return None if is_said or result in ("TestStatus", "TestErrFatal") else said[-2000:] or "it says nothing"


def tests(tree):
    """All that are listed, once each."""
    found, directories = {}, ["."]
    while directories:
        directory = directories.pop(0)
        listed = tree / directory / "testlist"
        for line in listed.read_text().splitlines() if listed.exists() else ():
            words = line.split("#")[0].split()
            if not words or words[0].startswith("!"):
                continue
            inside = str(pathlib.Path(directory) / words[0])
            if (tree / inside).is_dir() and len(words) <= 2:
                directories.append(inside)
                continue
            test = Test(directory, words)
            if test.is_standard():
                found.setdefault(test.identity(), test)
    return list(found.values())


def configure(place, tree, mpi, fortran, renamed):
    """For the wrappers in `mpi`/bin."""
    flags = " ".join(["-O0", "-w", *(f"-D{old}={new}" for old, new in renamed.items())])
    legacy = "-w -fallow-argument-mismatch"
    place.build("./configure", f"--with-mpi={mpi}", "--disable-cxx", "--enable-strictmpi", "--enable-threads=multiple",
                f"--enable-fortran={fortran}", "--enable-romio", "--with-dtpools-datatypes=MPI_INT,MPI_INT:4+MPI_DOUBLE:8",
                f"CFLAGS={flags}", f"FFLAGS={legacy}", f"FCFLAGS={legacy}", cwd=tree)


def make(place, tree, unbuilt, has_f08):
    place.build("make", "-C", "dtpools", cwd=tree)
    place.build("make", "-k", cwd=tree, accept=(0, 2))
    if has_f08:
        make_f08(place, tree)
    # Some are for MPICH alone by their makefiles, and are in the lists and in the standard all the same.
    for test in tests(tree):
        if not (tree / test.name()).exists() and test.name() not in unbuilt:
            place.run("make", test.program, cwd=tree / test.directory, accept=(0, 2))


def make_f08(place, tree):
    """Module mpi_f08 is tested of MPICH alone, for no reason."""
    with (tree / "testlist").open("a") as listed:
        listed.write("f08\n")
    place.run("mpifort", "-c", "mtest_f08.f90", cwd=tree / "util")
    place.build("make", "libmtest_f08.la", cwd=tree / "util")
    place.run("ar", "r", ".libs/libmtest_f08.a", "mtest_f08.o", cwd=tree / "util")
    place.build("make", "-k", cwd=tree / "f08", accept=(0, 2))


def judge(place, tree, abi, unbuilt, otherwise):
    """Runs all, and says what is neither right nor listed."""
    passed, excused, missing, wrong = 0, set(), set(), []
    for test in tests(tree):
        name = test.name()
        if not (tree / name).exists():
            (missing.add if name in unbuilt else wrong.append)(name)
            continue
        begun = time.monotonic()
        why = "not run" if name in HANGS else test.fails(place, tree, abi)
        if why is None:
            passed += 1
        elif name in otherwise:
            excused.add(name)
        else:
            wrong.append(name)
            say(f"  {' '.join(map(str, test.identity()))} ({time.monotonic() - begun:.1f} s): {why}")
    if wrong:
        raise Failure(f"{len(wrong)} of MPICH's tests: {', '.join(sorted(set(wrong)))}")
    place.told = [f"{passed} runs", f"{len(excused)} programs that ask for something else and {len(missing)} that cannot be "
                  f"compiled are listed with the reason in `tests/programs/{place.name}.py`"]


def check(place):
    source = place.debian_source("mpich") / "test" / "mpi"
    tree = place.work / "tests"
    facts = (place.versions["mpich"], place.prefix)
    if not place.done("tests", *facts):
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(source, tree, symlinks=True)
        configure(place, tree, place.prefix, "all", RENAMED)
        make(place, tree, UNBUILT, has_f08=True)
        place.mark("tests", *facts)
    judge(place, tree, "standard", UNBUILT, OTHERWISE)
