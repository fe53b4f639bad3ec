"""A rank of a job that has joined others dies: whoever waits for it is told, everything else goes on."""

import re

from support import Case

STAY = 2
KINDS = ["create", "allocate", "dynamic"]
# What the two that stay are in when the last rank of the window has died, and how that one is called.
WAYS = {
    "fence": "rank {} of the window|target {}",
    "complete": "target {}",
    "unlock": "target {}",
    "flush": "target {}",
    "start": "rank {} of the window",
    "wait": "rank {} of the window",
    "held": "rank {} of the window",
}
# The others show much of the same.
SHORT = [("create", "fence"), ("dynamic", "unlock"), ("allocate", "wait"), ("create", "held")]


def cases():
    for kind in KINDS:
        for way in WAYS:
            name = f"death of ranks of a joined job, others in {way}, {kind}"
            yield Case(name, lambda t, k=kind, w=way: dies(t, k, w), (kind, way) not in SHORT)


def dies(tools, kind, way):
    # Of several each is missed; a fence waits for all of them.
    dying = 1 if kind == "allocate" else 2
    last = STAY + dying - 1
    named = WAYS[way].replace("{}", f"[{STAY}-{last}]" if way == "fence" else str(last))
    name = tools.scratch / f"port of {kind} {way}"
    program = [tools.program("joined"), kind, way, name]
    with tools.job("-n", STAY, *program, "stays") as staying, tools.job("-n", dying, *program, "dies") as other:
        outcome = staying.end()
        other.end()
    outcome.expect(outcome.code == 0, "ranks that go on")
    for rank in range(STAY):
        said = dict(re.findall(rf"rank {rank}: ([^:]*): (.*)", outcome.out))
        call = f"MPI_Win_{'lock' if way == 'held' else way}"
        # In shared memory nobody waits for a target that only has its memory touched; elsewhere the owner of a lock gives that to the next.
        is_over = way in ("complete", "unlock", "flush") if kind == "allocate" else way == "held"
        told = rf"aborted: .*window cells \(0x[0-9a-f]+\): .*({named}).*: a rank of a joined job has died"
        told = "well: " if is_over else told
        outcome.expect(re.fullmatch(told, said.get(call, "")) is not None, f"rank {rank} in {call} to be told `{told}`")
        outcome.expect(said.get("the other window") == "well: ", f"rank {rank} to go on in the other window")
        freed = said.get("MPI_Win_free", "")
        outcome.expect(freed.startswith("aborted: ") and "window cells" in freed, f"rank {rank} to be told when it frees the window")
        for well in "a window that is freed", "the other MPI_Win_free":
            outcome.expect(said.get(well) == "well: ", f"{well} on rank {rank}")
        outcome.expect(f"rank {rank} has ended" in outcome.out, f"rank {rank} to come to its end")
    outcome.expect("of MPI_COMM_WORLD" not in outcome.out, "nobody called a rank of MPI_COMM_WORLD who is none")
