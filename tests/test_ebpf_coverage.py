"""Every case of tests/workloads, recorded once and compared byte by byte with its expectations."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.ebpf import (
    WORKLOADS,
    Key,
    Seen,
    compile_workloads,
    expectations,
    expected,
    observed,
    record,
    require_ebpf,
)
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.ebpf]

CASES = sorted(
    name
    for source in WORKLOADS.glob("*.c")
    for name in re.findall(r'\{\s*"(\w+)",\s*\1\s*\}', source.read_text())
)


@dataclass
class Run:
    """One recording of all cases."""

    bundle: Bundle
    base: Path
    status: dict[str, int]
    stated: Path | None = None  # folder of the expectations, if `base` is a path on another machine


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All cases, recorded once."""
    require_ebpf()
    folder = tmp_path_factory.mktemp("cases")
    program = compile_workloads(folder)
    base = folder / "base"
    base.mkdir()
    result, bundle = record(folder / "run.trace", program, "all", base)
    assert result.exit_status == 0
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True)
    assert sorted(listed.stdout.split()) == CASES
    return Run(bundle, base, ended(bundle, program))


def ended(bundle: Bundle, program: Path) -> dict[str, int]:
    """Map each case to the exit status of its process."""
    status: dict[str, int] = {}
    for row in bundle.tables["processes"].to_pylist():
        argv = row["argv"]
        if len(argv) == 2 and argv[0] == bytes(program) and row["exit_code"] is not None:
            status[argv[1].decode()] = row["exit_code"]
    return status


def recorded_by(collector: str, folder: Path) -> Run:
    """Record all cases with another collector, through the command line."""
    program, base = compile_workloads(folder), folder / "base"
    base.mkdir()
    words = ("record", "--quiet", "--collector", collector, "-o", "run.trace", "--")
    done = tracehint(*words, program, "all", base, cwd=folder)
    assert done.returncode == 0, done.stderr
    bundle = read_bundle(folder / "run.trace")
    return Run(bundle, base, ended(bundle, program))


def test_nothing_was_lost(run: Run) -> None:
    assert run.bundle.problems == []
    lost = run.bundle.tables["losses"].to_pylist()
    assert lost == []


@pytest.mark.parametrize("case", CASES)
def test_case(run: Run, case: str) -> None:
    check_case(run, case)


def check_case(run: Run, case: str) -> None:
    """Compare a case with its stated expectations."""
    if run.status.get(case) == 77:
        return  # not supported by this kernel or file system, as the matrix page states
    folder = bytes(run.base / case)
    rows = expectations((run.stated or run.base) / f"{case}.expect")
    assert rows, "the case states nothing"
    free = {r["path"] for r in rows if r["kind"] == "fact" and r["what"] == "reads"}
    want, got = expected(rows, folder), observed(run.bundle, folder)
    _compare(want, {k: v for k, v in got.items() if not _free(k, free, folder)})
    for row in rows:
        if row["kind"] == "named":
            _named(run.bundle, row, folder)
        elif row["kind"] == "fact":
            _fact(run.bundle, row, folder, got)


def _free(key: Key, free: set[bytes], folder: bytes) -> bool:
    name = key[1].removeprefix(folder + b"/")
    return (name in free and key[2] == "read") or name.startswith(b"#")  # a file without a name yet


def _compare(want: dict[Key, Seen], got: dict[Key, Seen]) -> None:
    assert set(got) - set(want) == set(), "not stated by the case"
    for key, seen in want.items():
        assert key in got, f"missing {key}; seen: {list(got)}"
        have = got[key]
        if seen.bytes < 0:  # mapped: an upper bound
            assert not have.exact
            low, high = have.union()[0][0], have.union()[-1][1]
            assert low <= seen.union()[0][0]
            assert high >= seen.union()[-1][1]
            continue
        assert have.union() == seen.union(), key
        assert (have.bytes, have.ops, have.exact) == (seen.bytes, seen.ops, True), key


def _named(bundle: Bundle, row: dict[str, object], folder: bytes) -> None:
    def full(path: object) -> bytes | None:
        assert isinstance(path, bytes)
        return folder + b"/" + path if path else None

    new = row["new_path"] if row["op"] == "symlink" else full(row["new_path"])
    wanted = (row["op"], full(row["path"]), new)
    rows = bundle.tables["names"].to_pylist()
    found = [(r["op"], r["path"], r["new_path"]) for r in rows]
    assert wanted in found, [f for f in found if f[1].startswith(folder)]


def _files_called(bundle: Bundle, path: bytes) -> list[int]:
    """Return the files that ever had this path, in order."""
    found: list[int] = []
    for r in bundle.tables["names"].to_pylist():
        here = path in (r["path"], r["new_path"]) and r["op"] != "symlink"
        if here and r["op"] not in ("exchange",) and r["file"] not in found:
            found.append(r["file"])
    return found


def _sparse(what: str, path: bytes, key: Key) -> bool:
    return key[1:] == (path, "write", "mmap") if what == "sparse_writes" else key[3] == "mmap"


def _fact(bundle: Bundle, row: dict[str, object], folder: bytes, got: dict[Key, Seen]) -> None:
    assert isinstance(row["path"], bytes) and isinstance(row["other"], bytes)
    path, other = folder + b"/" + row["path"], folder + b"/" + row["other"]
    files = {r["file"]: r for r in bundle.tables["files"].to_pylist()}
    called = _files_called(bundle, path)
    match row["what"]:
        case "created":
            assert [files[f]["existed"] for f in called] == [False]
        case "same":
            assert set(called) & set(_files_called(bundle, other))
        case "deleted":
            assert called
            assert all(files[f]["deleted"] for f in called)
        case "deleted_first":
            assert [files[f]["deleted"] for f in called] == [True, False]
        case "kept":
            assert not any(files[f]["deleted"] for f in called)
        case "no_memfd":
            names = bundle.tables["names"].column("path").to_pylist()
            assert not any(row["path"] in name for name in names)
        case "reads":
            assert any(key[1] == path and key[2] == "read" for key in got)
        case "few_runs":
            rows = sum(s.rows for key, s in got.items() if key[1] == path and key[2] == "read")
            assert 0 < rows <= int(row["other"])
        case "distinct":
            assert len(called) == int(row["other"])
        case "written":
            ids = set(called)
            total = sum(
                r["write_bytes"] for r in bundle.tables["opens"].to_pylist() if r["file"] in ids
            )
            assert total == int(row["other"])
        case "sparse" | "sparse_writes":
            spans = [v.union() for k, v in got.items() if _sparse(row["what"], path, k)]
            assert 0 < sum(e - s for span in spans for s, e in span) <= int(row["other"])
        case "any_name":
            assert called
        case what:
            raise AssertionError(f"unknown fact {what}")
