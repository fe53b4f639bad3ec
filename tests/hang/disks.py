"""Files of MPI on a file system that is full or that may not be written to, which are errors that name the file, on every rank;
and what a killed rank leaves of a file."""

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


def full_of_blocks(tools):
    """On a file system that gives room when a page is first written to, and tells of none by a signal to who stores."""
    make = 'PATH="$PATH:/usr/sbin:/sbin"; truncate -s 8M $place.ext4 && mkfs.ext4 -q -F -m 0 $place.ext4'
    on(tools, "full-ext4", f"{make} && mount -o loop $place.ext4 $place && rmdir $place/lost+found")


def read_only(tools):
    mount = "mount -t tmpfs -o size=2m tern-test $place && printf x > $place/there && mount -o remount,ro $place"
    on(tools, "read-only", mount, "$place/there")


def killed(tools, how):
    """A rank is killed inside a collective write, at several moments: what is left is a file that others can use."""
    place = tools.scratch / f"killed-{how}"
    place.mkdir()
    file, program = place / "file", tools.program("writer_killed")
    for delay_us in (50, 700, 2000, 5500):
        outcome = run(tools, "-n", "3", program, file, how, str(delay_us))
        outcome.expect(outcome.code != 0 and "killed by signal 9" in outcome.err, "a job ended by the death of a rank")
        outcome = run(tools, "-n", "3", program, file, "check")
        outcome.expect(outcome.code == 0 and "test passed" in outcome.out, f"a file for others, {delay_us} us after")
        outcome.expect([found.name for found in place.iterdir()] == ["file"], "nothing beside the file")


def cases():
    yield Case("a rank killed inside a collective write", lambda tools: killed(tools, "plain"))
    yield Case("a rank killed inside a collective write in atomic mode", lambda tools: killed(tools, "atomic"))
    yield Case("files on a full disk", full)
    yield Case("files on a full disk, ext4", full_of_blocks)
    yield Case("files on a disk that is read only", read_only)
