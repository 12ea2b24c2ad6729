"""The real stores for replays, each a bed of tests/support and one line here."""

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
    """A running store. `chunk`: bytes of a file that are stored together; `synced`: whether a task
    must sync a file before closing it so that its bytes are stored."""

    chunk: ClassVar[int]
    synced: ClassVar[bool]

    @property
    def folder(self) -> Path:
        """Folder that the command line of every process of the bed contains."""
        ...

    def received(self) -> int:
        """Return the bytes received over the nodes' links so far."""
        ...

    def give(self, folder: Path, place: str) -> None:
        """Place new files of a folder: "1" (number of copies), "node_A", "node_A_2"."""
        ...

    def where(self, paths: Sequence[Path]) -> dict[Path, Counter[str]]:
        """Return path -> label of a node -> number of the file's chunks on it."""
        ...


class Start(Protocol):
    """Function that starts a store in a folder, behind links of `link` Mbit/s."""

    def __call__(self, folder: Path, *, link: int) -> AbstractContextManager[GainBed]: ...


@dataclass(frozen=True)
class Store:
    """`name` as in `--store`; `rows` and `scales` that run on it; `client_memory`: bytes of a
    node's client cache, apart from the page cache; `copies`: whether the store's adapter sets
    numbers of copies."""

    name: str
    title: str
    start: Start
    missing: Callable[[], str]
    rows: tuple[str, ...]
    scales: tuple[str, ...]
    client_memory: int = 0
    copies: bool = True

    def takes(self, placement: Placement) -> Placement:
        """Return the part of a placement, of hints or a plan, that the store's adapter sets."""
        if self.copies or placement.copies is None:
            return placement
        return replace(placement, copies=np.zeros_like(placement.copies))


# The memory of a client is scaled like the sizes: 32 MiB, not 200.
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
