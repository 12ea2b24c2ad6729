"""The cases of tests/workloads under strace; operations missing in a system call log are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ebpf import Key, Seen, expectations, expected, observed
from tests.test_ebpf_coverage import CASES, Run, _compare, _fact, _free, _named, recorded_by
from tracehint.collectors.strace import StraceCollector

_CHECK = StraceCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

# case -> why strace cannot record it; a case that begins to pass must be removed
UNSEEN = {
    "map_fork": "which process touches a shared mapping is no system call",
    "map_grandchild": "the same, and who mapped it has ended",
    "map_write_few": "pages written are no system calls",
    "map_read_into": "pages written are no system calls",
    "map_sparse": "pages touched are no system calls: the whole mapped range is the bound",
    "special_bind": "two paths of one bind mount: the log names paths, not inodes",
    **{
        f"uring_{kind}": "requests are in memory shared with the kernel"
        for kind in ("plain", "async", "sqpoll", "linked", "fixed", "vectors")
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All cases, recorded once."""
    return recorded_by("strace", tmp_path_factory.mktemp("cases"))


def test_only_io_uring_and_mounts_are_missing(run: Run) -> None:
    losses = run.bundle.tables["losses"].to_pylist()
    assert {(r["kind"], r["detail"]) for r in losses} <= {
        ("unknown_calls", "io_uring"),
        ("unknown_calls", "mounts: one path may mean several files"),
    }
    assert run.bundle.manifest.complete


@pytest.mark.parametrize("case", CASES)
def test_case(run: Run, case: str) -> None:
    if run.status.get(case) == 77:
        return  # this kernel or file system does not support it
    if case in UNSEEN:
        with pytest.raises((AssertionError, KeyError)):
            _check(run, case)
    else:
        _check(run, case)


def _check(run: Run, case: str) -> None:
    folder = bytes(run.base / case)
    rows = expectations(Path(run.base / f"{case}.expect"))
    free = {r["path"] for r in rows if r["kind"] == "fact" and r["what"] == "reads"}
    want, got = expected(rows, folder), observed(run.bundle, folder)
    stated = {k: v for k, v in got.items() if not _free(k, free, folder)}
    if case.startswith("aio"):
        _within(want, stated)  # the log shows each request: better than the stated bound
    else:
        _compare(want, stated)
    for row in rows:
        if row["kind"] == "named":
            _named(run.bundle, row, folder)
        elif row["kind"] == "fact":
            _fact(run.bundle, row, folder, got)


def _within(want: dict[Key, Seen], got: dict[Key, Seen]) -> None:
    for key, seen in want.items():
        assert got[key].union()[0][0] == seen.union()[0][0]
        assert got[key].union()[-1][1] == seen.union()[-1][1]
