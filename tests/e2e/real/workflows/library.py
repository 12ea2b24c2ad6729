"""`make -j2` of a small C library, its archive and its test."""

from __future__ import annotations

from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.workflows.inputs import make

UNITS = range(8)
OBJECTS = tuple(f"unit_{k}.o" for k in UNITS)


def jobs() -> list[Job]:
    names = [*(f"unit_{k}" for k in UNITS), "check"]
    return [
        *(Job(f"cc {n}", f"-c -o {n}.o {n}.c", (f"{n}.c", "sum.h"), (f"{n}.o",)) for n in names),
        Job("ar", "ar rcs", OBJECTS, ("libsum.a",)),
        Job("link", "cc -o check", ("check.o", "libsum.a"), ("check",)),
        Job("run", "./check", ("check",), ("check.txt",)),
    ]


WORKFLOW = Workflow(
    name="library",
    title="C library (make -j2)",
    needs=("make", "cc", "ar"),
    prepare=lambda folder: make("real/make_library.py", folder),
    command=("make", "-s", "-j2"),
    jobs=jobs,
    # The kernel maps an executed program: not a read by the program.
    not_used=lambda: {("run", "check")},
    shows=(("sum.h", "broadcast"), ("unit_0.o", "reduce"), ("unit_0.c", "stage_in")),
)
