"""The real stores that the rows run on."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from scripts.bench.hints.rows import ROWS
from scripts.bench.hints.settings import SETTINGS
from scripts.bench.probe import measured
from tests.support import ceph, shaped
from tests.support.ceph import ceph_cluster
from tests.support.cluster_run import Cluster
from tests.support.shaped import shaped_cluster

_CORES = re.compile(r"^cores = \d+", re.MULTILINE)


class StoreBed(Cluster, Protocol):
    """A running store."""

    def command(self, *words: str | Path) -> list[str | Path]:
        """A command line that runs on the head."""
        ...

    def local_first(self, on: bool) -> None:
        """Put new files on the writing client's node, for the whole store."""
        ...


@dataclass(frozen=True)
class Store:
    """How to start a store, and what is measured on it."""

    name: str
    start: Callable[[Path], AbstractContextManager[StoreBed]]
    missing: Callable[[], str]
    rows: tuple[str, ...]
    settings: tuple[str, ...]

    def cluster(self, bed: StoreBed, out: Path) -> Path:
        """The measured cluster in `out`, one task on a node at a time; measured when missing."""
        path = out / f"{self.name}.toml"
        if not path.exists():
            measured(bed, self.name, out / f"{self.name}.hosts.toml", path)
            path.write_text(_CORES.sub("cores = 1", path.read_text()))
        return path


STORES: dict[str, Store] = {
    store.name: store
    for store in (
        Store(
            "moosefs",
            partial(shaped_cluster, near=True),
            shaped.missing,
            tuple(ROWS),
            tuple(SETTINGS),
        ),
        # CephFS has no setting that keeps new files on the writing client's node.
        Store(
            "cephfs",
            ceph_cluster,
            ceph.missing,
            ("pipeline", "broadcast", "reduce", "scatter"),
            ("default", "hand", "ours", "planned"),
        ),
    )
}
