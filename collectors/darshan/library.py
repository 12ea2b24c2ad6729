"""The library in the `darshan` wheel, without what the wheel loads beside it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def wrapper() -> Any:
    """The wheel's wrapper of the library. In worker processes (pool.py) only.

    The wheel makes its tables with pandas, and nothing here asks it for one: to load that takes
    longer than everything else that such a worker does for a few logs, 0.3 s of CPU.
    """
    if "pandas" not in sys.modules:
        sys.modules["pandas"] = _Unused("pandas")
    from darshan.backend import cffi_backend

    return cffi_backend


class _Unused(ModuleType):
    """A module that is named in annotations at most."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):  # Python's own questions, such as for __path__
            raise AttributeError(name)
        return object
