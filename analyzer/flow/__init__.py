"""Which task handed which bytes of which file to which task (docs/reference/flow.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.analyzer.flow.model import Flow

if TYPE_CHECKING:
    from tracehint.analyzer.execution.model import Execution
    from tracehint.analyzer.flow.build import Ahead, Cut
    from tracehint.analyzer.model import Options
    from tracehint.schemas.store import Bundle

__all__ = ["Flow", "build_flow"]


def build_flow(
    bundle: Bundle,
    cut: Cut,
    roots: Sequence[bytes],
    options: Options,
    extents: Execution | None = None,
    *,
    owned: bool = False,
    found: Ahead | None = None,
) -> Flow:
    """Files by version, their producers and consumers, and the edges between tasks.

    `cut` says which process epoch belongs to which task, `roots` are the data roots, `extents`
    who has that table and computes (default: this process). Tables have the schemas of
    `tracehint.analyzer.model`. With `owned`, columns of the bundle that nothing needs after this
    are dropped from its tables. `found` waits for the files, where somebody looks for them
    already (`flow.identity.find_objects`). Never raises on damaged rows: what was left out is in
    `Flow.notes`.
    """
    from tracehint.analyzer import roots as rules
    from tracehint.analyzer.flow.build import build

    if extents is None:
        from tracehint.analyzer.execution.local import LocalExtents

        extents = LocalExtents(bundle.tables["extents"])
    return build(bundle, cut, roots, options, rules, extents, owned=owned, found=found)
