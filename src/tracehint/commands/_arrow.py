"""Start-up of the commands that use Arrow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """An import finder that has no pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def skip_pandas() -> None:
    """Keep pyarrow from importing pandas, which takes longer than analyzing a small run.

    Where pandas is installed, pyarrow looks for it once, at the first array made from Python
    values. For commands only: in a process of the user's it could matter later. `to_pandas`
    still works, it looks again.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
