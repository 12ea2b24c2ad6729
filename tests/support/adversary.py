"""Record tests/adversary with one collector and compare the bundle with its statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.built import built
from tests.support.cli import record
from tests.support.ebpf import WORKLOADS, Key, Seen, expectations, expected, observed
from tracehint.schemas.store import Bundle, read_bundle

SOURCES = WORKLOADS.parent / "adversary"
CASES = sorted(
    name
    for source in SOURCES.glob("*.c")
    for name in re.findall(r'\{\s*"(\w+)",\s*\1\s*\}', source.read_text())
)
SKIPPED = 77


@dataclass
class Recorded:
    """One recording of all cases."""

    bundle: Bundle
    base: Path
    status: dict[str, int]

    def losses(self, case: str) -> list[tuple[str, str]]:
        """Return (kind, detail) of the losses of this case's processes or of no process."""
        mine = self.processes(case)
        return [
            (r["kind"], r["detail"] or "")
            for r in self.bundle.tables["losses"].to_pylist()
            if r["proc"] is None or r["proc"] in mine
        ]

    def processes(self, case: str) -> set[int]:
        """Return the case's process and its descendants."""
        found: set[int] = set()
        rows = sorted(self.bundle.tables["processes"].to_pylist(), key=lambda r: r["proc"])
        for row in rows:
            argv = row["argv"]
            if argv[1:] == [case.encode()] or {row["parent"], row["prev"]} & found:
                found.add(row["proc"])
        return found


def record_cases(folder: Path, collector: str, case: str = "all") -> Recorded:
    """Compile the cases and run all or one of them under one recorder."""
    base = folder / "base"
    groups = "-DGROUPS=data_cases,handle_cases,path_cases,mapping_cases,ring_cases"
    sources = [WORKLOADS / "main.c", WORKLOADS / "loss.c", *sorted(SOURCES.glob("*.c"))]
    flags = ("-std=gnu11", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", groups)
    program = built(folder / "adversary", "cc", *flags, *sources)
    base.mkdir()
    (base / "old").write_bytes(b"x" * 5003)
    words = ("all", base) if case == "all" else (case,)
    done = record(program, *words, collector=collector, cwd=folder)
    assert done.returncode == 0, done.stderr
    bundle = read_bundle(folder / "run.trace")
    status: dict[str, int] = {}
    for row in bundle.tables["processes"].to_pylist():
        if len(row["argv"]) == 2 and row["exit_code"] is not None:
            status.setdefault(row["argv"][1].decode(), row["exit_code"])
    return Recorded(bundle, base, status)


def check(run: Recorded, case: str) -> None:
    """Compare the recording of one case with its statements."""
    folder = bytes(run.base / case)
    rows = expectations(run.base / f"{case}.expect")
    facts = [r for r in rows if r["kind"] == "fact"]
    free = {r["path"] for r in facts if r["what"] == "reads"}
    cut = any(r["what"] == "cut" or counted(run, case, r) for r in facts)
    want, got = expected(rows, folder), observed(run.bundle, folder)
    if not cut:
        stated = {k: v for k, v in got.items() if k in want or not _free(k, free, folder)}
        compare(want, stated)
    names = [(r["op"], r["path"], r["new_path"]) for r in run.bundle.tables["names"].to_pylist()]
    for row in rows:
        if row["kind"] == "named":
            wanted = (row["op"], folder + b"/" + row["path"], folder + b"/" + row["new_path"])
            assert wanted in names
    for row in facts:
        _fact(run, case, row["what"], folder + b"/" + row["path"], row["other"])


def counted(run: Recorded, case: str, row: dict[str, Any]) -> bool:
    """Whether permitted losses occurred: then the case's I/O may be incomplete."""
    kinds = {kind for kind, _ in run.losses(case)}
    return row["what"] == "counted" and bool(kinds & {"extent_records", "unknown_calls"})


def _free(key: Key, free: set[bytes], folder: bytes) -> bool:
    return key[2] == "read" and key[1].removeprefix(folder + b"/") in free


def compare(want: dict[Key, Seen], got: dict[Key, Seen]) -> None:
    """Require exactly the stated accesses; those stated with -1 bytes must be within a bound."""
    assert set(got) - set(want) == set(), "not stated by the case"
    for key, seen in want.items():
        assert key in got, f"missing {key}; seen: {list(got)}"
        have = got[key]
        if seen.bytes < 0:
            assert not have.exact
            have.ranges += seen.ranges
            known = got[key].union()
            del have.ranges[-len(seen.ranges) :]
            assert have.union() == known, key
        else:
            assert have.union() == seen.union(), key
            assert (have.bytes, have.ops, have.exact) == (seen.bytes, seen.ops, True), key


def _fact(run: Recorded, case: str, what: str, path: bytes, other: bytes) -> None:
    base = path[: path.index(case.encode()) + len(case) + 1]
    files = {r["file"]: r for r in run.bundle.tables["files"].to_pylist()}
    if what == "created":
        assert [files[f]["existed"] for f in called(run.bundle, path)] == [False]
    elif what == "same":
        assert set(called(run.bundle, path)) & set(called(run.bundle, base + other))
    elif what == "distinct":
        assert len(called(run.bundle, path)) == int(other)
    elif what == "deleted":
        gone = "".join(str(int(files[f]["deleted"])) for f in called(run.bundle, path))
        assert gone == other.decode()
    elif what == "piped":
        mine = run.processes(case)
        pipes = [
            r
            for r in run.bundle.tables["opens"].to_pylist()
            if r["proc"] in mine and files[r["file"]]["kind"] == "pipe"
        ]
        moved = [sum(r[side] for r in pipes) for side in ("read_bytes", "write_bytes")]
        assert moved == [int(n) for n in other.split()]
    elif what == "unfollowed":
        assert any(kind == "unknown_calls" for kind, _ in run.losses(case))
    elif what == "cut":
        whole = any(len(n) > 4096 for n in run.bundle.tables["names"].column("path").to_pylist())
        assert whole or any(kind == "path_cut" for kind, _ in run.losses(case))
    else:
        assert what in ("reads", "counted")


def called(bundle: Bundle, path: bytes) -> list[int]:
    """Return the files that ever had this path, in order."""
    rows = bundle.tables["names"].to_pylist()
    return list(dict.fromkeys(r["file"] for r in rows if path in (r["path"], r["new_path"])))
