"""What the flow needs and is computed beside other work, before the data roots are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.flow.declared import Reading, begin
from tracehint.analyzer.flow.identity import find_objects
from tracehint.analyzer.flow.model import Objects

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


@dataclass(frozen=True)
class Ahead:
    """Who waits for it; each is to be called once. `resources` are for what is left to do."""

    found: Callable[[], tuple[Objects, Ints]]  # `find_objects`
    declared: Reading | None  # None: nothing is declared
    resources: Resources


def declared_of(
    bundle: Bundle, joined: pa.Table, tasks: pa.Table, resources: Resources
) -> Reading | None:
    """Begin to read what is declared; None if nothing is. The bundle keeps its tables."""
    if not bundle.tables["declared_io"].num_rows or not joined.num_rows:
        return None
    return begin(bundle, joined, tasks, resources)


def nothing_yet(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> Ahead:
    """All is computed when it is asked for."""
    alone = Resources()
    return Ahead(partial(find_objects, bundle), declared_of(bundle, joined, tasks, alone), alone)
