"""Who computes on the accesses of a run: this process, or a distributed engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.model import Analysis, Options

__all__ = ["ENGINES", "analyze_at"]

# engine -> module with `analyze_at(where, options, master)`
ENGINES = {
    "duckdb": "tracehint.analyzer.execution.local",
    "spark": "tracehint.analyzer.execution.spark.extents",
}


def analyze_at(
    where: str,
    options: Options,
    engine: str = "duckdb",
    master: str | None = None,
    resources: Resources | None = None,
) -> Analysis:
    """Read the bundle at `where` (a directory; for some engines also a URL) and analyze it.

    All engines give the same analysis. `master` is the URL of the engine's cluster, `resources`
    what this process may use (engine duckdb only). Raises TracehintError: no bundle there, or
    an engine that is not installed or fails.
    """
    given = {} if resources is None else {"resources": resources}
    found: Analysis = import_module(ENGINES[engine]).analyze_at(where, options, master, **given)
    return found
