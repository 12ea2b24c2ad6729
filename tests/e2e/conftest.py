"""Fixtures that several end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import shaped, slurm
from tests.support.slurm import Cluster

_REQUEUE_S = 15


@pytest.fixture(scope="module", name="slurm")
def _slurm() -> Iterator[Cluster]:
    """A real Slurm of two nodes."""
    if lost := slurm.missing():
        pytest.skip(lost)
    with slurm.cluster(("node1", "node2")) as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Site]:
    """A real Slurm of three nodes that share a real MooseFS."""
    if lost := shaped.missing() or slurm.missing():
        pytest.skip(lost)
    with shaped.shaped_cluster(tmp_path_factory.mktemp("bed"), link=100) as bed:
        nodes = bed.nodes[:3]
        names, places = [node.label for node in nodes], slurm.places_on(bed, nodes)
        with slurm.cluster(names, scratch=True, places=places, requeue_s=_REQUEUE_S) as running:
            yield slurm.Site(bed, running)
