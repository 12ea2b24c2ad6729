"""Arrow and numpy without what they load or start and nothing here uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def no_blas_threads() -> None:
    """Keep numpy from starting a pool of linear algebra threads: about 0.15 s of CPU.

    To be called before numpy is imported, and never where a command of the user's is started
    later: it would inherit the variables.
    """
    for variable in _BLAS:
        os.environ.setdefault(variable, "1")


class _NoPandas:
    """An import finder that has no pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def skip_pandas() -> None:
    """Load pyarrow and numpy without pandas, whose import takes longer than analyzing a small run,
    with the allocator of the C library, and without threads of linear algebra.

    Where pandas is installed, pyarrow looks for it once, at the first array made from Python
    values. For commands only: in a process of the user's it could matter later. `to_pandas`
    still works, it looks again. What is started later inherits nothing.
    """
    if "pandas" in sys.modules:
        return
    before = {variable: os.environ.get(variable) for variable in _BLAS}
    no_blas_threads()
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        # Columns come and go by the hundred megabytes. Arrow's own allocator gives pages back and
        # asks for them again, which took the kernel longer than everything else took.
        pa.set_memory_pool(pa.system_memory_pool())
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
