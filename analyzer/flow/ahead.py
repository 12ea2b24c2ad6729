"""What the flow needs and is computed beside other work, before the data roots are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.flow.declared import Reading, Start, begin
from tracehint.analyzer.flow.identity import find_objects
from tracehint.analyzer.flow.model import Objects

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

T = TypeVar("T")


@dataclass(frozen=True)
class Ahead:
    """Who waits for it; each is to be called once. `start` is for what is left to do."""

    found: Callable[[], tuple[Objects, Ints]]  # `find_objects`
    declared: Reading | None  # None: nothing is declared
    start: Start


def declared_of(bundle: Bundle, joined: pa.Table, tasks: pa.Table, start: Start) -> Reading | None:
    """Begin to read what is declared; None if nothing is. The bundle keeps its tables."""
    if not bundle.tables["declared_io"].num_rows or not joined.num_rows:
        return None
    return begin(bundle, joined, tasks, start)


def nothing_yet(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> Ahead:
    """All is computed when it is asked for."""
    declared = declared_of(bundle, joined, tasks, _when_asked)
    return Ahead(partial(find_objects, bundle), declared, _when_asked)


def _when_asked(work: Callable[[], T]) -> Callable[[], T]:
    return work
