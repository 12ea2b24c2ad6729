"""The real stores that replays run on, each a bed of tests/support and one line here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from scripts.bench.gain.rows import ROWS, SCALES
from scripts.bench.probe import Nodes
from tests.support import ceph, shaped

from tracehint.analyzer.predict.model import Placement


class GainBed(Nodes, Protocol):
    """A running store. `chunk`: bytes of a file that lie together; `synced`: whether a task has to
    ask for its bytes to be stored when it closes a file."""

    chunk: ClassVar[int]
    synced: ClassVar[bool]

    @property
    def folder(self) -> Path:
        """What every process of the bed names."""
        ...

    def received(self) -> int:
        """Bytes that came in over the nodes' links so far."""
        ...

    def give(self, folder: Path, place: str) -> None:
        """What is made in a folder goes to a place: "1", so many copies, "node_A", "node_A_2"."""
        ...

    def where(self, paths: Sequence[Path]) -> dict[Path, Counter[str]]:
        """Path -> label of a node -> chunks of the file that lie there."""
        ...


class Start(Protocol):
    """How a store is started in a folder, behind links of so many Mbit/s."""

    def __call__(self, folder: Path, *, link: int) -> AbstractContextManager[GainBed]: ...


@dataclass(frozen=True)
class Store:
    """`name` as in `--store`; `rows` and `scales` that run on it; `client_memory`: bytes that a
    node's client keeps of what is read past the page cache; `copies`: whether the store's adapter
    gives files more copies."""

    name: str
    title: str
    start: Start
    missing: Callable[[], str]
    rows: tuple[str, ...]
    scales: tuple[str, ...]
    client_memory: int = 0
    copies: bool = True

    def takes(self, placement: Placement) -> Placement:
        """What its adapter sets of a placement that hints or a plan made."""
        if self.copies or placement.copies is None:
            return placement
        return replace(placement, copies=np.zeros_like(placement.copies))


# The memory of a client is divided as the sizes are: 32 MiB, not 200.
_CLIENT = 32 << 20
_CONF = f"client_oc_size = {_CLIENT}\nclient_oc_max_dirty = {_CLIENT // 2}\n"

STORES: dict[str, Store] = {
    store.name: store
    for store in (
        Store("moosefs", "MooseFS 3.0.117", shaped.shaped_cluster, shaped.missing, tuple(ROWS),
            tuple(SCALES)),
        Store("cephfs", "CephFS 16.2.15", partial(ceph.ceph_cluster, more=_CONF), ceph.missing,
            ("srasearch", "montage-dss", "1000genome", "epigenomics"), ("data",),
            client_memory=_CLIENT, copies=False),
    )
}  # fmt: skip  # a table
