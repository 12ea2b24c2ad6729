"""The coverage cases on stock Debian kernels in QEMU: `make test-kernels`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.boot import BASE, Booted, BootError, boot, kernel_names, missing_tools
from tests.test_ebpf_coverage import CASES, Run, check_case

pytestmark = [pytest.mark.kernels, pytest.mark.full]

# Without tracepoints of page faults (of files: since Linux 6.12; of the processor: x86) only the
# mapped range is known.
NO_FAULTS = {"map_sparse", "map_fork", "map_grandchild", "map_write_few", "map_read_into"}
# Cases that need what the guest's kernel or ext4 does not have.
NOT_THERE = {"copy_clone"}
# by architecture: 32-bit programs are not compiled for aarch64
NOT_THERE_ON = {"amd64": NOT_THERE, "arm64": NOT_THERE | {"special_32bit"}}


def unseen(release: str) -> set[str]:
    return NO_FAULTS if release.startswith("6.1.") or release.endswith("arm64") else set()


def failures(booted: Booted) -> dict[str, str]:
    """Map the cases that this kernel recorded wrongly to the errors."""
    run = Run(booted.bundle, BASE, booted.status, booted.stated)
    failed = {}
    for case in CASES:
        try:
            check_case(run, case)
        except (AssertionError, KeyError) as error:
            failed[case] = str(error)[:300]
    return failed


def require_tools() -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; scripts/setup.sh kernels")


@pytest.fixture(scope="module", params=kernel_names())
def booted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Booted:
    """Boot each kernel once."""
    require_tools()
    return boot(request.param, tmp_path_factory.mktemp("kernel"))


def test_all_cases_ran(booted: Booted) -> None:
    assert set(booted.status) == set(CASES)
    assert {case for case, code in booted.status.items() if code == 77} == (
        NOT_THERE_ON[booted.release.rpartition("-")[2]]
    )
    assert set(booted.status.values()) == {0, 77}


def test_nothing_was_lost(booted: Booted) -> None:
    assert booted.bundle.tables["losses"].to_pylist() == []


def test_every_case_is_as_stated(booted: Booted) -> None:
    failed = failures(booted)
    assert set(failed) == unseen(booted.release), failed


def test_what_a_kernel_lacks_is_named(tmp_path: Path) -> None:
    require_tools()
    with pytest.raises(BootError, match=r"the kernel lacks bpf_loop \(Linux 5\.17\), bpf_find_vma"):
        boot("5.10", tmp_path)
