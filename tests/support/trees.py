"""Process trees for tests, written as nested tuples.

    P(["sh", "wf.sh"], P(["sort", "x"]), P(SUB, P(["head", "a"]), then=["tail", "a"]))

A child is forked (an epoch without arguments) and execs its words; `then` is a further exec of
the same process, after its children. SUB: no exec before its children (a subshell).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.bundles import RunBuilder

SUB: list[str] = []


@dataclass
class P:
    """One process. Times follow the order of definition, 0.01 s apart, unless given."""

    argv: list[str]
    kids: tuple[P, ...] = ()
    then: list[str] | None = None
    label: str = ""
    exit_code: int = 0
    signal: int | None = None
    start: float | None = None
    end: float | None = None
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    procs: list[int] = field(default_factory=list)  # its epochs, filled when built

    def __init__(self, argv: list[str], *kids: P, **more: Any) -> None:
        self.argv, self.kids = argv, kids
        self.then = more.pop("then", None)
        self.label = more.pop("label", "")
        self.exit_code = more.pop("exit_code", 0)
        self.signal = more.pop("signal", None)
        self.start = more.pop("start", None)
        self.end = more.pop("end", None)
        self.env = more.pop("env", {})
        self.cwd = more.pop("cwd", None)
        self.procs = []
        assert not more, more


class Clock:
    """Seconds, increasing by 0.01 with each `tick`."""

    def __init__(self) -> None:
        self.now = 0.0

    def tick(self) -> float:
        self.now += 0.01
        return self.now


def grow(run: RunBuilder, process: P, parent: int | None = None, clock: Clock | None = None) -> P:
    """Add the process and its descendants to the run."""
    clock = clock or Clock()
    start = clock.tick() if process.start is None else process.start
    rows = run.rows["processes"]
    first = len(rows)
    common = {"cwd": process.cwd, "exit_code": None}
    if parent is not None:
        process.procs.append(run.process([], parent=parent, start=start, **common))
    prev = process.procs[-1] if process.procs else None
    if process.argv:
        process.procs.append(
            run.process(process.argv, prev=prev, start=start, env=process.env, **common)
        )
    pid = rows[first]["pid"]
    for kid in process.kids:
        grow(run, kid, process.procs[-1], clock)
    if process.then:
        process.procs.append(
            run.process(process.then, prev=process.procs[-1], start=clock.tick(), **common)
        )
    own = [r for r in rows[first:] if r["proc"] in process.procs]
    from tests.support.bundles import ns

    for row, following in zip(own, [*own[1:], None], strict=True):
        row["pid"] = pid
        last = ns(clock.tick() if process.end is None else process.end)
        row["end_ns"] = following["start_ns"] if following else last
    own[-1]["exit_code"] = None if process.signal else process.exit_code
    own[-1]["exit_signal"] = process.signal
    return process


def labelled(process: P) -> dict[str, P]:
    """Map each label to its process in a tree."""
    found = {process.label: process} if process.label else {}
    for kid in process.kids:
        found |= labelled(kid)
    return found
