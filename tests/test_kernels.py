"""The coverage cases on stock Debian kernels in QEMU: `make test-kernels`."""

from __future__ import annotations

import pytest

from tests.kernels.boot import BASE, Booted, boot, kernel_names, missing_tools
from tests.test_ebpf_coverage import CASES, Run, check_case

pytestmark = [pytest.mark.kernels, pytest.mark.full]

# Without fault tracepoints (before Linux 6.12) the mapped range is all that is known.
NO_FAULTS = {
    "map_sparse", "map_fork", "map_grandchild", "map_write_few", "map_read_into",
}  # fmt: skip  # a table
# What a case needs that the guest's kernel or ext4 does not have.
NOT_THERE = {"copy_clone"}
UNSEEN = {"6.1": NO_FAULTS, "6.12": set[str]()}


def failures(booted: Booted) -> dict[str, str]:
    """The cases that this kernel's recording got wrong, and how."""
    run = Run(booted.bundle, BASE, booted.status, booted.stated)
    failed = {}
    for case in CASES:
        try:
            check_case(run, case)
        except (AssertionError, KeyError) as error:
            failed[case] = str(error)[:300]
    return failed


@pytest.fixture(scope="module", params=kernel_names())
def booted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Booted:
    """One boot of each kernel."""
    missing = missing_tools()
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; scripts/setup.sh kernels")
    return boot(request.param, tmp_path_factory.mktemp("kernel"))


def test_all_cases_ran(booted: Booted) -> None:
    assert set(booted.status) == set(CASES)
    assert {case for case, code in booted.status.items() if code == 77} == NOT_THERE
    assert set(booted.status.values()) == {0, 77}


def test_nothing_was_lost(booted: Booted) -> None:
    assert booted.bundle.tables["losses"].to_pylist() == []


def test_every_case_is_as_stated(booted: Booted) -> None:
    series = ".".join(booted.release.split(".")[:2])
    failed = failures(booted)
    assert set(failed) == UNSEEN[series], failed
