"""Wrong calls, wrong environments, no resources: one message, an exit code, an end of the whole job."""

import os
import pathlib
import re
import resource
import socket
import threading

from support import Case, nothing_shared, private_mount, run, segments

WORLD = r"comm=MPI_COMM_WORLD\)"
RANKS = 8

# Case of bad.c, class, what the message says besides.
CALLS = [
    ("count", "COUNT", [r"MPI_Send\(count=-1,", r"`count` is -1"]),
    ("dest", "RANK", [r"MPI_Send\(", r"`dest` is 8, the communicator has 8 ranks \(0 to 7\)", WORLD]),
    ("source", "RANK", [r"MPI_Recv\(", r"`source` is -7"]),
    ("tag", "TAG", [r"MPI_Send\(", r"`tag` is -5"]),
    ("any_tag", "TAG", [r"`tag` is -2 \(MPI_ANY_TAG\)"]),
    ("any_source", "RANK", [r"`dest` is -1 \(MPI_ANY_SOURCE\)"]),
    ("comm", "COMM", [r"MPI_Send\(", r"`comm` is not a communicator .*0x7654321"]),
    ("comm_null", "COMM", [r"MPI_Barrier\(", r"`comm` is MPI_COMM_NULL"]),
    ("type", "TYPE", [r"`datatype` is not a datatype .*0x7654321"]),
    ("type_null", "TYPE", [r"the datatype of `buf` is MPI_DATATYPE_NULL"]),
    ("null_buffer", "BUFFER", [r"MPI_Send\(", r"`buf` is NULL, but count is 3"]),
    ("null_receive", "BUFFER", [r"MPI_Recv\(", r"`buf` is NULL, but count is 3"]),
    ("root", "ROOT", [r"MPI_Bcast\(", r"`root` is 8"]),
    ("op", "OP", [r"MPI_Allreduce\(", r"MPI_BAND is not defined for MPI_FLOAT"]),
    ("op_null", "OP", [r"`op` is MPI_OP_NULL"]),
    ("alias", "BUFFER", [r"MPI_Allreduce\(", r"`sendbuf` and `recvbuf` are the same buffer"]),
    ("overlap", "BUFFER", [r"MPI_Allreduce\(", r"`sendbuf` and `recvbuf` overlap in 20 bytes"]),
    ("overlap_gather", "BUFFER", [r"MPI_Allgather\(", r"`sendbuf` and `recvbuf` (overlap in 4 bytes|are the same buffer)"]),
    ("in_place", "BUFFER", [r"MPI_Send\(", r"`buf` is MPI_IN_PLACE"]),
    ("in_place_receive", "BUFFER", [r"MPI_Allreduce\(", r"`recvbuf` is MPI_IN_PLACE"]),
    ("counts", "COUNT", [r"MPI_Gather\(", r"`recvcount` is -2"]),
    ("null_request", "ARG", [r"MPI_Wait", r"`request` is NULL"]),
    ("window", "SIZE", [r"`size`", r"-4"]),
    ("colour", "ARG", [r"MPI_Comm_split\(", r"`color` is -9"]),
    ("uncommitted", "TYPE", [r"MPI_Send\(", r"not committed"]),
    ("freed_type", "TYPE", [r"`datatype` is not a datatype \(freed"]),
    ("freed_comm", "COMM", [r"`comm` is not a communicator \(freed"]),
    ("freed_request", "REQUEST", [r"`request` is not a request \(freed"]),
    ("freed_group", "GROUP", [r"`group` is not a group \(freed"]),
    ("truncation", "TRUNCATE", [r"MPI_Recv\(", r"message of 40 bytes from rank \d, tag 33, .*16 bytes", WORLD]),
    ("long_truncation", "TRUNCATE", [r"message of 1048576 bytes from rank \d, tag 33, .*1000 bytes"]),
    ("in_status", "IN_STATUS", [r"MPI_Waitall\(", r"MPI_ERR_TRUNCATE: message of 40 bytes"]),
    ("kinds", "NOT_SAME", [r"MPI_Barrier\(", r"this rank is in Barrier where rank 0 is in Bcast"]),
    ("roots", "NOT_SAME", [r"MPI_Finalize", r"a message of rank \d in Bcast on MPI_COMM_WORLD was never received by rank \d"]),
    ("lengths", "TRUNCATE", [r"MPI_Bcast\(", r"rank \d sent 4 bytes in this Bcast, .* ask for 8"]),
    ("algorithms", "TRUNCATE", [r"MPI_Allreduce\(", r"rank \d runs this Allreduce by another algorithm: its count"]),
    ("init_twice", "OTHER", [r"MPI_Init", "already"]),
    ("after_finalize", "OTHER", [r"MPI_Barrier: .*called after MPI_Finalize"]),
    ("before_init", "OTHER", [r"MPI_Barrier: .*called before MPI_Init"]),
]

# Environment of a program that is started alone, and what the message says.
LAUNCHERS = [
    ({"PMI_RANK": "1"}, r"PMI_RANK is set but neither PMI_FD nor PMI_PORT"),
    ({"PMI_SIZE": "2"}, r"PMI_SIZE is set but"),
    ({"PMI_FD": "9"}, r"PMI_FD is set but PMI_RANK is not"),
    ({"PMI_FD": "9", "PMI_RANK": "0"}, r"PMI_FD is set but PMI_SIZE is not"),
    ({"PMI_FD": "nine", "PMI_RANK": "0", "PMI_SIZE": "1"}, r"PMI_FD=nine"),
    ({"PMI_FD": "93", "PMI_RANK": "0", "PMI_SIZE": "2"}, r"PMI_FD=93 is not an open descriptor"),
    ({"PMI_FD": "93", "PMI_RANK": "2", "PMI_SIZE": "2"}, r"PMI_RANK=2 is not below PMI_SIZE=2"),
    ({"PMI_PORT": "here", "PMI_ID": "0"}, r"PMI_PORT=here is not host:port"),
    ({"PMI_PORT": "127.0.0.1:1"}, r"PMI_ID is not"),
    ({"PMI_PORT": "127.0.0.1:1", "PMI_ID": "0"}, r"PMI_PORT=127.0.0.1:1: .*refused"),
    ({"PMIX_RANK": "0", "PMIX_NAMESPACE": "x"}, r"PMIx launcher started this process \(PMIX_RANK is set\), but there is no way"),
    ({"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "0"}, r"Open MPI's mpirun started this process"),
    ({"SLURM_STEP_NUM_TASKS": "8"}, r"srun started this process"),
    ({"TERN_CONTROL_FD": "91"}, r"TERN_CONTROL_FD=91 is not an open descriptor"),
]

# Settings, and what the message says.
SETTINGS = [
    ({"TERN_EAGRE_MAX": "4K"}, r"unknown setting TERN_EAGRE_MAX; the nearest known one is TERN_EAGER_MAX"),
    ({"TERN_EAGER_MAX": "much"}, r"setting TERN_EAGER_MAX=much: must be a number of bytes"),
    ({"TERN_EAGER_MAX": "-1"}, r"setting TERN_EAGER_MAX=-1"),
    ({"TERN_SINGLE_COPY": "maybe"}, r"setting TERN_SINGLE_COPY=maybe: must be 0 or 1"),
    ({"TERN_COLL_BCAST": "fast"}, r"setting TERN_COLL_BCAST=fast: must be one of auto"),
    ({"TERN_SHM_DIR": "/nowhere/at/all"}, r"cannot create /nowhere/at/all/tern-.*TERN_SHM_DIR"),
    ({"TERN_SHM_DIR": "/proc"}, r"cannot create /proc/tern-.*TERN_SHM_DIR"),
]

OPENING = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
NAME = "cmd=my_kvsname rc=0 kvsname=space\n"
MAXES = "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n"

# What a launcher answers, one line for each request (None: it hangs up), and what the message says.
ANSWERS = [
    ("hangs up", [None], r"PMI init"),
    ("garbage", ["\0\1\2 hello\n"], r"PMI init"),
    ("not text", [b"cmd=\xff\xfe\n"], r"PMI init"),
    ("no command", ["rc=0\n"], r"PMI init"),
    ("another command", ["cmd=maxes rc=0\n"], r"PMI init.*maxes"),
    ("refuses", ["cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n", None], r"neither PMI-1 nor PMI-2: .*rc=-1"),
    ("another version", ["cmd=response_to_init rc=0 pmi_version=9 pmi_subversion=1\n", None], r"neither PMI-1 nor PMI-2: .*pmi_version=9"),
    ("a number that is none", ["cmd=response_to_init rc=0 pmi_version=one pmi_subversion=1\n"], r"PMI init"),
    ("a line without an end", ["x" * 200000], r"PMI init"),
    ("no name", [OPENING, "cmd=my_kvsname rc=0\n"], r"PMI get_my_kvsname.*kvsname="),
    ("half a line", [OPENING, "cmd=my_kv", None], r"PMI get_my_kvsname"),
    ("no maxes", [OPENING, NAME, "cmd=maxes rc=0\n"], r"PMI get_maxes"),
    ("tiny maxes", [OPENING, NAME, "cmd=maxes rc=0 kvsname_max=1 keylen_max=1 vallen_max=1\n"], r"(?i)PMI|key"),
    ("negative maxes", [OPENING, NAME, "cmd=maxes rc=0 kvsname_max=-3 keylen_max=64 vallen_max=64\n"], r"PMI get_maxes.*-3"),
    ("put refused", [OPENING, NAME, MAXES, "cmd=put_result rc=-1 msg=full\n"], r"PMI put.*-1"),
    ("barrier refused", [OPENING, NAME, MAXES, "cmd=put_result rc=0\n", "cmd=put_result rc=0\n", None], r"PMI barrier_in"),
]

# The same for rank 1 of 2, which is told where the shared memory is.
PLACES = [
    ("key missing", "cmd=get_result rc=-1 msg=no_such_key\n", r"PMI get.*-1"),
    ("no value", "cmd=get_result rc=0\n", r"PMI get.*value="),
    ("not escaped", "cmd=get_result rc=0 value=%%%\n", r"PMI|tern\.shm|shared memory"),
    ("another file", "cmd=get_result rc=0 value=/etc/passwd\n", r"(?i)passwd|tern\.shm|PMI"),
    ("no file", "cmd=get_result rc=0 value=/nowhere/tern-x\n", r"(?i)nowhere|tern\.shm|PMI"),
]


# The same where ranks ask each other who shares a host.
SHARED = [
    ("host not told", "cmd=get_result rc=-1 msg=no_such_key\n", r"PMI get.*-1"),
    ("hosts of nobody", "cmd=get_result rc=0 value=sx\n", r"what all ranks say of tern\.host was not written by this library"),
    ("hosts of three ranks", "cmd=get_result rc=0 value=s3%20x%0a\n", r"what all ranks say of tern\.host was not written"),
]


def cases():
    for name, kind, says in CALLS:
        yield Case(f"bad call {name}", lambda tools, n=name, k=kind, s=says: call(tools, n, k, s))
    yield Case("bad call abort_7", abort)
    for environment, says in LAUNCHERS:
        text = " ".join(f"{key}={value}" for key, value in environment.items())
        yield Case(f"bad launcher {text}", lambda tools, e=environment, s=says: alone(tools, e, s))
    for environment, says in SETTINGS:
        text = " ".join(f"{key}={value}" for key, value in environment.items())
        yield Case(f"bad setting {text}", lambda tools, e=environment, s=says: setting(tools, e, s))
    for name, answers, says in ANSWERS:
        yield Case(f"bad PMI {name}", lambda tools, a=answers, s=says: pmi(tools, 0, a, s))
    for name, answer, says in PLACES:
        lines = [OPENING, NAME, "cmd=barrier_out rc=0\n", MAXES, answer]
        yield Case(f"bad PMI {name}", lambda tools, a=lines, s=says: pmi(tools, 1, a, s))
    for name, answer, says in SHARED:
        put = ["cmd=put_result rc=0\n", "cmd=barrier_out rc=0\n", "cmd=barrier_out rc=0\n"]
        lines = [OPENING, NAME, MAXES, *put, answer]
        yield Case(f"bad PMI {name}", lambda tools, a=lines, s=says: pmi(tools, 1, a, s, devices="auto"))
    yield Case("no space for the segment", lambda tools: no_space(tools, "16k", 4))
    yield Case("no space for messages", lambda tools: no_space(tools, "512k", 20))
    yield Case("space enough", lambda tools: no_space(tools, "64m", 4))
    yield Case("settings that differ between ranks", differing)
    for name in ("TERN_DECISIONS", "TERN_JOURNAL"):
        for kind in ("pipe", "directory"):
            yield Case(f"{name} names a {kind}", lambda tools, n=name, k=kind: no_file(tools, n, k))
    yield Case("TERN_DECISIONS names a device", lambda tools: setting(tools, {"TERN_DECISIONS": "/dev/zero"}, r"TERN_DECISIONS=/dev/zero: not a regular file"))
    yield Case("limit of open files of mpiexec", few_files)
    yield Case("limit of open files of a rank", few_files_of_a_rank)
    yield Case("no shared memory stays behind", nothing_stays)


def once(outcome, *says):
    """The one message, and nothing after the mistake."""
    outcome.expect(outcome.code not in (0, None) and outcome.code < 126, "an exit code that says failure")
    outcome.expect("got past" not in outcome.err, "no rank to get past the mistake")
    outcome.expect_message(*says)
    lines = [line for line in outcome.err.splitlines() if line.strip()]
    outcome.expect(len(lines) == 1, "one line of error")
    outcome.expect("panicked" not in outcome.err, "an error, not a panic")


def call(tools, name, kind, says):
    outcome = run(tools, "-n", RANKS, tools.program("bad"), name)
    once(outcome, rf"^tern: .*MPI_ERR_{kind}: ", *says)
    if name not in ("before_init", "after_finalize", "roots"):
        outcome.expect_message(r"^tern: rank \d: MPI_")


def abort(tools):
    outcome = run(tools, "-n", RANKS, tools.program("bad"), "abort_7")
    once(outcome, r"rank 7: MPI_Abort was called with code 7")
    outcome.expect(outcome.code == 7, "exit code 7")


def alone(tools, environment, says):
    none = {name: None for name in os.environ if re.match(r"PMI|OMPI|SLURM|TERN", name)}
    once(run(tools, tools.program("bad"), "good", launcher=(), env={**none, **environment}), r"MPI_Init", says)


def setting(tools, environment, says):
    once(run(tools, "-n", RANKS, tools.program("bad"), "good", env=environment), says)


def no_file(tools, name, kind):
    place = tools.scratch / f"{name}-{kind}"
    (os.mkfifo if kind == "pipe" else os.mkdir)(place)
    setting(tools, {name: str(place)}, rf"{name}={re.escape(str(place))}: ")


def differing(tools):
    """All ranks must choose the same algorithms, and the same ways to the memory of windows."""
    program = [tools.program("bad"), "good"]
    for name, word in ("TERN_COLL_BCAST", "chain"), ("TERN_WIN", "active"):
        outcome = run(tools, "-n", 1, "-env", name, word, *program, ":", "-n", 2, *program)
        once(outcome, rf"setting {name} is `auto` on rank [12] and `{word}` on rank 0: it must be the same on all ranks")


class Launcher(threading.Thread):
    """A launcher that answers each request with the next line."""

    def __init__(self, answers):
        super().__init__(daemon=True)
        self.ours, self.theirs = socket.socketpair()
        self.answers = answers

    def run(self):
        try:
            for answer in self.answers:
                if answer is None:
                    break
                if not self.ours.recv(65536):
                    return
                self.ours.sendall(answer if isinstance(answer, bytes) else answer.encode())
            else:
                while self.ours.recv(65536):
                    pass
        except OSError:
            pass
        self.ours.close()


def pmi(tools, rank, answers, says, devices="shm"):
    launcher = Launcher(answers)
    fd = launcher.theirs.fileno()
    os.set_inheritable(fd, True)
    environment = {"PMI_FD": str(fd), "PMI_RANK": str(rank), "PMI_SIZE": "2", "TERN_CONTROL_FD": None}
    environment["TERN_DEVICES"] = devices
    with tools.job(tools.program("bad"), "good", launcher=(), env=environment, keep=[fd]) as job:
        launcher.theirs.close()
        launcher.start()
        outcome = job.end()
    once(outcome, r"MPI_Init", says)


def no_space(tools, size, ranks):
    """A small file system of its own, in a private mount namespace: nothing of it is left."""
    place = tools.scratch / f"small-{size}"
    place.mkdir(exist_ok=True)
    mount = f"mount -t tmpfs -o size={size} tern-test '{place}'"
    private = private_mount(mount)
    command = f"{mount} && '{tools.mpiexec}' -n {ranks} '{tools.program('bad')}' good"
    environment = {"TERN_SHM_DIR": str(place)}
    outcome = run(tools, "sh", "-c", f"{command}; code=$?; ls '{place}'; exit $code", launcher=private, env=environment)
    if size == "64m":
        outcome.expect(outcome.code == 0 and "sum 6 of 4" in outcome.out, "a good end")
    else:
        once(outcome, rf"no space for shared memory in {re.escape(str(place))} \(No space left", r"TERN_SHM_DIR")
    outcome.expect("tern-" not in outcome.out, "an empty directory afterwards")


def few_files(tools):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
    once(run(tools, "-n", RANKS, tools.program("bad"), "good", before=limit), r"^mpiexec: the limit of open files is 20 here and this job needs \d+: .*ulimit")


def few_files_of_a_rank(tools):
    """Tables of descriptors too small for MPI_Init: an error of MPI_Init, or none at all."""
    for limit in range(6, 14):
        command = f"ulimit -n {limit} && exec '{tools.program('bad')}' good"
        outcome = run(tools, "-n", 2, "sh", "-c", command)
        if outcome.code == 0:
            return
        # The loader itself needs a descriptor for the library.
        if not re.search(r"error while loading shared libraries|ulimit", outcome.err):
            once(outcome, r"MPI_Init|mpiexec")
            outcome.expect_message(r"(?i)too many open files|limit of open files|not an open descriptor")
    outcome.expect(False, "a limit of 13 files to be enough for a rank")


def nothing_stays(tools):
    before = segments()
    for name in ("dest", "kinds", "roots"):
        run(tools, "-n", RANKS, tools.program("bad"), name)
    nothing_shared(before)
    outcome = run(tools, "-n", 2, tools.program("bad"), "good")
    outcome.expect(outcome.code == 0, "a job after it to run")
