"""Arrow and numpy without what they load or start and nothing here uses."""

from __future__ import annotations

import importlib
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from types import ModuleType

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def no_blas_threads() -> None:
    """Keep numpy from starting a pool of linear algebra threads: about 0.15 s of CPU.

    To be called before numpy is imported, and never before a command of the user's is started:
    it would inherit the variables.
    """
    for variable in _BLAS:
        os.environ.setdefault(variable, "1")


def load_before_a_command() -> None:
    """As `skip_pandas`, where a command of the user's is started later: it inherits nothing."""
    before = {variable: os.environ.get(variable) for variable in _BLAS}
    try:
        skip_pandas()
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)


class _NoPandas:
    """An import finder that has no pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


class _NoText(defaultdict[str, list[str]]):
    """What pyarrow finds in a docstring: nothing."""

    def __init__(self, _text: str) -> None:
        super().__init__(list)


def _load_functions() -> None:
    """`pyarrow.compute`, its functions without the description of their options: to take that out
    of 109 docstrings is more than a third of what the module costs, 14 ms of CPU."""
    scraper = "pyarrow.vendored.docscrape"
    if scraper in sys.modules:
        return
    sys.modules[scraper] = module = ModuleType(scraper)
    module.__dict__["NumpyDocString"] = _NoText
    try:
        importlib.import_module("pyarrow.compute")
    finally:
        del sys.modules[scraper]


def skip_pandas() -> None:
    """Keep pyarrow from importing pandas, which takes longer than analyzing a small run, and from
    reading its own documentation, and let it use the allocator of the C library.

    Where pandas is installed, pyarrow looks for it once, at the first array made from Python
    values. For commands only: in a process of the user's it could matter later. `to_pandas`
    still works, it looks again.
    """
    if "pandas" in sys.modules:
        return
    no_blas_threads()
    import pyarrow as pa

    _load_functions()

    # Columns come and go by the hundred megabytes. Arrow's own allocator gives pages back and
    # asks for them again, which took the kernel longer than everything else took.
    pa.set_memory_pool(pa.system_memory_pool())
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
