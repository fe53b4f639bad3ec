"""Files of MPI on a file system that is full or that may not be written to: errors that name the file, on every rank."""

from support import Case, private_mount, run


def on(tools, name, mount, *words):
    """Runs disks.c on a small file system of its own, mounted at `$place` by a command of the shell."""
    place = tools.scratch / name
    place.mkdir(exist_ok=True)
    mount = f"place='{place}'; {mount}"
    private = private_mount(mount)
    command = f"{mount} && exec '{tools.mpiexec}' -n 3 '{tools.program('disks')}' {' '.join(words)}"
    outcome = run(tools, "sh", "-c", command, launcher=private, env={"TMPDIR": str(place)})
    outcome.expect(outcome.code == 0 and "test passed" in outcome.out, "a good end")


def full(tools):
    on(tools, "full", "mount -t tmpfs -o size=2m tern-test $place")


def read_only(tools):
    mount = "mount -t tmpfs -o size=2m tern-test $place && printf x > $place/there && mount -o remount,ro $place"
    on(tools, "read-only", mount, "$place/there")


def cases():
    yield Case("files on a full disk", full)
    yield Case("files on a disk that is read only", read_only)
