"""The cases of tests/workloads with the preload library; invisible operations are listed."""

from __future__ import annotations

import pytest

from tests.support.needs import needs_preload
from tests.test_ebpf_coverage import CASES, Run, check_case, recorded_by

pytestmark = [pytest.mark.slow, needs_preload()]

# case -> why the library cannot record it; a case that begins to pass must be removed
_PAGES = "pages touched are no system calls: the whole mapped range is the bound"
_RINGS = "requests are in memory shared with the kernel"
UNSEEN = {
    "special_32bit": "system calls of the 32-bit table are in no C library of 64 bits",
    "map_sparse": _PAGES,
    "map_write_few": _PAGES,
    "map_read_into": _PAGES,
    "map_fork": "the child's use of its parent's mapping is no system call",
    "map_grandchild": "the same, and who mapped it has ended",
    **{case: _RINGS for case in CASES if case.startswith("uring_")},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One recording of all cases."""
    return recorded_by("preload", tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("case", CASES)
def test_case(run: Run, case: str) -> None:
    if run.status.get(case) == 77:
        return  # this kernel or file system does not support it
    if case in UNSEEN:
        with pytest.raises((AssertionError, KeyError)):
            check_case(run, case)
    else:
        check_case(run, case)


def test_rings_are_a_named_loss(run: Run) -> None:
    rows = run.bundle.tables["losses"].to_pylist()
    lost = {(row["kind"], row["detail"]) for row in rows}
    assert ("unknown_calls", "io_uring") in lost
