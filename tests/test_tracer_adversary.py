"""Every case of tests/adversary is recorded, or counted as missed. Nothing is lost silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.adversary import CASES, SKIPPED, Recorded, check, record_cases
from tests.support.ebpf import require_ebpf
from tracehint.collectors.registry import check as can_record

# Cases that strace cannot record -> the loss that states it; remove those that begin to pass.
UNSEEN = {
    "data_killed_writer": "killed within a call",
    "handles_by_handle": "open_by_handle_at",
    "paths_own_mount": "mounts",
    "paths_bind_in_own_mount": "mounts",
    "rings_open": "io_uring",
    "rings_positions": "io_uring",
}


@pytest.fixture(scope="module")
def ebpf(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """All cases recorded with eBPF."""
    require_ebpf()
    return record_cases(tmp_path_factory.mktemp("ebpf"), "ebpf")


@pytest.fixture(scope="module")
def strace(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """All cases recorded with strace."""
    found = can_record("strace")
    if not found.usable:
        pytest.skip(found.reason)
    return record_cases(tmp_path_factory.mktemp("strace"), "strace")


@pytest.mark.ebpf
@pytest.mark.parametrize("case", CASES)
def test_with_ebpf(ebpf: Recorded, case: str) -> None:
    if ebpf.status[case] != SKIPPED:
        assert ebpf.status[case] == 0
        check(ebpf, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_with_strace(strace: Recorded, case: str) -> None:
    if strace.status[case] == SKIPPED:
        return
    assert strace.status[case] == 0
    if case in UNSEEN:
        with pytest.raises((AssertionError, KeyError)):
            check(strace, case)
        assert any(UNSEEN[case] in detail for _, detail in strace.losses(case))
    else:
        check(strace, case)


@pytest.mark.ebpf
def test_ebpf_counts_nothing_else(ebpf: Recorded) -> None:
    busy = ebpf.processes("mappings_busy_shared")  # its recording may be incomplete
    rows = [r for r in ebpf.bundle.tables["losses"].to_pylist() if r["proc"] not in busy]
    lost = {(r["kind"], r["detail"]) for r in rows}
    assert lost <= {
        ("path_cut", None),
        ("unknown_calls", "call 133"),
        ("unknown_calls", "call 259"),
        *(("unknown_calls", f"io_uring operation {n}") for n in (17, 30, 35, 36)),
    }


@pytest.mark.ebpf
def test_the_first_faults_of_a_thread_are_recorded(tmp_path: Path) -> None:
    """This includes the first program, before which the kernel's memory reserves are empty."""
    require_ebpf()
    found = record_cases(tmp_path, "ebpf", "mappings_used_by_a_thread")
    assert found.bundle.tables["losses"].to_pylist() == []
    names = {r["open"]: r["path"] for r in found.bundle.tables["opens"].to_pylist()}
    ours = [
        row
        for row in found.bundle.tables["extents"].to_pylist()
        if row["how"] == "mmap" and names[row["open"]] == bytes(tmp_path / "f")
    ]
    assert {row["op"] for row in ours} == {"read", "write"}
