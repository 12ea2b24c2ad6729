"""The vectorised flow against the byte-by-byte reference, on random small runs."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.flow_cut import Case, View
from tests.support.flow_reference import File, Reference

MORE = int(os.environ.get("TRACEHINT_EXAMPLES", "1"))  # factor for the number of examples
SIZE = 48
TASKS = ("engine", "a", "b", "c", "d")
PATHS = ("/data/one", "/data/two")

Step = tuple[str, int, int, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["read", "read", "read", "write", "write", "write", "truncate", "recreate", "replace"]
        ),
        st.integers(0, len(TASKS) - 1),
        st.integers(0, 1),
        st.integers(0, SIZE - 1),
        st.integers(1, SIZE),
    ),
    max_size=24,
)


class Play:
    """Applies the same operations to a bundle and to the reference, one per second."""

    def __init__(self, existed: tuple[bool, bool]) -> None:
        self.case = Case()
        self.ids = {"engine": self.case.engine}
        self.ids |= {name: self.case.task(name) for name in TASKS[1:]}
        self.reference = Reference({"engine"})
        self.now = 1.0
        self.file: dict[int, tuple[int, File]] = {}
        for slot, old in enumerate(existed):
            self._new(slot, old, 20)

    def _new(self, slot: int, existed: bool, size: int, at: float | None = None) -> None:
        path = PATHS[slot]
        number = self.case.run.file(path, existed=existed)
        if existed:
            proc = self.case.engine
            row = self.case.run.read(proc, number, 0, 1, at=0.5)
            self.case.run.rows["opens"][-1]["size_at_open"] = size
            self.case.run.rows["extents"].pop()
            assert row
        if at is not None:
            self.case.run.rows["names"][-1]["t_ns"] += round(at * 1e9)
        self.file[slot] = (number, self.reference.create(path, size, existed=existed))

    def step(self, op: str, who: int, slot: int, a: int, b: int) -> None:
        self.now += 1.0
        task, (number, file) = TASKS[who], self.file[slot]
        if task == "engine" and slot:
            return  # an engine that handles one file copies nothing
        proc, run, start, end = self.ids[task], self.case.run, min(a, b), max(a, b)
        if op == "read":
            end = min(end, file.size)
            if start < end:
                run.read(proc, number, start, end, at=self.now)
                self.reference.read(task, file, start, end)
        elif op == "write" and start < end:
            run.write(proc, number, start, end, at=self.now)
            self.reference.write(task, file, start, end)
        elif op == "truncate":
            run.truncate(proc, number, a, at=self.now)
            self.reference.truncate(task, file, a)
        elif op == "recreate":
            run.name(number, "unlink", file.path, at=self.now, proc=proc)
            self._gone(number)
            self._new(slot, False, 0, at=self.now + 0.1)
        elif op == "replace":
            self._gone(number)
            new = run.file(f"{file.path}.tmp{self.now}", existed=False)
            run.rows["names"][-1]["t_ns"] += round(self.now * 1e9)
            run.name(new, "rename", f"{file.path}.tmp{self.now}", file.path, at=self.now + 0.1)
            self.file[slot] = (new, self.reference.create(file.path, 0, existed=False))

    def _gone(self, number: int) -> None:
        next(r for r in self.case.run.rows["files"] if r["file"] == number)["deleted"] = True

    def finish(self) -> None:
        self.reference.finish()
        for path in PATHS:
            same = [f for f in self.reference.files if f.path == path]
            used = [
                f
                for f in same
                if any(
                    self.reference.producers(f, v)
                    or self.reference.consumers(f, v)
                    or f.events
                    or f.emptied
                    for v in range(f.version + 1)
                )
            ]
            for file in same:
                file.gone = file is not same[-1]
                file.replaced = any(same.index(u) > same.index(file) for u in used)


def expected(reference: Reference) -> dict[str, Any]:
    entries = reference.entries()
    number = {(id(f), v): (path[len("/data/") :], n) for path, n, f, v in entries}
    last = {path: n for path, n, _, _ in entries}
    edges, consumers, producers, roles, sizes = {}, {}, {}, {}, {}
    for path, n, file, version in entries:
        key = number[id(file), version]
        for (p, c), found in reference.edges(file, version).items():
            edges[p, *key, c] = len(found)
        consumers[key] = {t: len(b) for t, b in reference.consumers(file, version).items()}
        producers[key] = reference.producers(file, version)
        roles[key] = reference.role(file, version, last=last[path] == n)
        sizes[key] = file.sizes.get(version, 0)
    return {
        "edges": edges,
        "consumers": {k: v for k, v in consumers.items() if v},
        "producers": {k: v for k, v in producers.items() if v},
        "roles": roles,
        "sizes": sizes,
    }


def observed(view: View) -> dict[str, Any]:
    return {
        "edges": view.edges,
        "consumers": {
            k: {t: r["unique_bytes"] for t, r in v.items()} for k, v in view.consumers.items()
        },
        "producers": {
            k: {
                t: (r["bytes"], r["unique_bytes"], r["owned_bytes"], r["superseded"])
                for t, r in v.items()
            }
            for k, v in view.producers.items()
        },
        "roles": view.roles,
        "sizes": {f["key"]: f["size_bytes"] for f in view.files.values()},
    }


def flat(edges: dict[tuple[str, str, int, str], int]) -> set[tuple[str, str, str]]:
    return {(p, path, c) for p, path, _, c in edges}


@pytest.mark.slow
@settings(max_examples=100 * MORE, deadline=None)
@given(steps, st.tuples(st.booleans(), st.booleans()), st.booleans())
def test_same_as_byte_by_byte(
    script: list[Step], existed: tuple[bool, bool], general: bool
) -> None:
    play = Play(existed)
    for step in script:
        play.step(*step)
    play.finish()
    want, got = expected(play.reference), observed(play.case.flow(general=general))
    if play.reference.cycles():  # folded: versions cannot be compared, edges can
        assert flat(got["edges"]) == flat(want["edges"])
    else:
        assert got == want
