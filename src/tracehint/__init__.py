"""tracehint: find the storage hints of a workflow by watching one run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.api import Run, load

__all__ = ["Options", "Run", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """`load`, `Run` and `Options` at their first use: the import itself costs nothing."""
    if name in ("load", "Run"):
        from tracehint import api

        return getattr(api, name)
    if name == "Options":
        from tracehint.analyzer.model import Options

        return Options
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What a user may take from here, also before its first use."""
    return [*__all__, "errors"]
