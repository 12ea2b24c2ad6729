"""Load Arrow and NumPy without the modules and threads that tracehint does not use."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def no_blas_threads() -> None:
    """Prevent NumPy from starting a pool of linear algebra threads: about 0.15 s of CPU.

    Call it before NumPy is imported, and never in a process that starts a user's command later:
    the command would inherit the variables.
    """
    for variable in _BLAS:
        os.environ.setdefault(variable, "1")


class _NoPandas:
    """An import finder that hides pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def skip_pandas() -> None:
    """Load pyarrow and NumPy without pandas, whose import takes longer than analyzing a small run,
    with the allocator of the C library, and without linear algebra threads.

    If pandas is installed, pyarrow imports it once, at the first array created from Python
    values. For commands only: in a user's own process it could have effects later. `to_pandas`
    still works: it retries the import. Processes started later inherit nothing.
    """
    if "pandas" in sys.modules:
        return
    before = {variable: os.environ.get(variable) for variable in _BLAS}
    no_blas_threads()
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        # Columns of hundreds of megabytes are allocated and freed. Arrow's own allocator returns
        # pages to the kernel and requests them again, which took longer than all other work.
        pa.set_memory_pool(pa.system_memory_pool())
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
