"""tracehint: find the storage hints of a workflow by watching one run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracehint.api import Run, load

__all__ = ["Run", "__version__", "load"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`load` and `Run` at their first use: the import itself costs nothing."""
    if name in ("load", "Run"):
        from tracehint import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
