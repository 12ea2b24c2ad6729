"""The cases of tests/workloads below the preload library; what it cannot see is listed."""

from __future__ import annotations

import pytest

from tests.test_ebpf_coverage import CASES, Run, check_case, recorded_by
from tracehint.collectors.preload import PreloadCollector

_CHECK = PreloadCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

# case -> why the library cannot have it. A case that begins to pass must leave this table.
UNSEEN = {
    "map_fork": "which process touches a shared mapping is no system call",
    "map_grandchild": "the same, and who mapped it has ended",
    "map_write_few": "pages written are no system calls",
    "map_read_into": "pages written are no system calls",
    "map_sparse": "pages touched are no system calls: the whole mapped range is the bound",
    "special_32bit": "system calls of the 32-bit table stand in no C library of 64 bits",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All cases, recorded once."""
    return recorded_by("preload", tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("case", CASES)
def test_case(run: Run, case: str) -> None:
    if run.status.get(case) == 77:
        return  # this kernel or file system does not have it
    if case in UNSEEN:
        with pytest.raises((AssertionError, KeyError)):
            check_case(run, case)
    else:
        check_case(run, case)
