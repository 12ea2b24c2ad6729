"""JX, the language that Makeflow's JSON workflows may be written in, evaluated to plain values.

JX adds comments, variables, operators, list comprehensions and a few functions to JSON. What is
here follows `jx2json` of cctools 9.9 (tests/test_jx.py compares both), with bounds on depth and
work, since a workflow file may come from a stranger. `fetch()` is refused and `listdir()` stays
below the directory of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracehint.adapters.engines.jx.evaluate import MAX_STEPS, Evaluator
from tracehint.adapters.engines.jx.parse import parse
from tracehint.adapters.engines.jx.tree import JxError

__all__ = ["MAX_STEPS", "JxError", "evaluate"]


def evaluate(text: str, folder: Path | None = None, steps: int = MAX_STEPS) -> Any:
    """The value of a JX document: None, bool, int, float, str, list and dict only.

    folder: the only directory (and what is below it) that `listdir()` may read; None: nothing.
    steps: how many evaluation steps are allowed. Names in the document's `define` object can be
    used everywhere in it. Raises JxError.
    """
    try:
        return Evaluator(folder, steps).document(parse(text))
    except (RecursionError, OverflowError, MemoryError):
        raise JxError("nested too deeply, or numbers too large") from None
