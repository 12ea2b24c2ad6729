"""Fixtures that several end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.slurm import Cluster, cluster, missing


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    """A real Slurm of two nodes."""
    if lost := missing():
        pytest.skip(lost)
    with cluster(("node1", "node2")) as running:
        yield running
