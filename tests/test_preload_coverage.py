"""The cases of tests/workloads below the preload library; what it cannot see is listed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.preload import FEW, looked_at
from tests.test_ebpf_coverage import CASES, Run, check_case, recorded_by
from tracehint.collectors.preload import PreloadCollector

_CHECK = PreloadCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

# case -> why the library cannot have it. A case that begins to pass must leave this table.
UNSEEN = {"special_32bit": "system calls of the 32-bit table stand in no C library of 64 bits"}
# where the kernel takes pages away meanwhile, the mapped range is recorded
TAKEN = {"map_fork", "map_grandchild", "map_sparse"}


@dataclass
class Cases:
    """One recording of all cases."""

    run: Run
    taken: bool  # the kernel looked for pages to take away


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    before = looked_at()
    run = recorded_by("preload", tmp_path_factory.mktemp("cases"))
    return Cases(run, looked_at() - before > FEW)


@pytest.mark.parametrize("case", CASES)
def test_case(cases: Cases, case: str) -> None:
    run = cases.run
    if run.status.get(case) == 77 or (cases.taken and case in TAKEN):
        return  # this kernel or file system does not have it, or memory is short
    if case in UNSEEN:
        with pytest.raises((AssertionError, KeyError)):
            check_case(run, case)
    else:
        check_case(run, case)
