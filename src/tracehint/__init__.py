"""tracehint: find the storage hints of a workflow by watching one run of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracehint.version import __version__

__all__ = ["Options", "Run", "__version__", "load"]


# Public name -> module that defines it, imported at first use so that `import tracehint` is cheap.
# Type checkers read __init__.pyi.
_MODULES = {"load": "api", "Run": "api", "Options": "analyzer.model"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, including those that are not imported yet."""
    return [*__all__, "errors"]
