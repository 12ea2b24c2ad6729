"""JX, the language that Makeflow's JSON workflows may be written in, evaluated to plain values.

JX adds comments, variables, operators, list comprehensions and a few functions to JSON. What is
here follows `jx2json` of cctools 9.9 (tests/test_jx.py compares both), with bounds on depth and
work, since a workflow file may come from a stranger. `fetch()` is refused and `listdir()` stays
below the directory of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracehint.adapters.engines.jx.evaluate import Evaluator
from tracehint.adapters.engines.jx.parse import parse
from tracehint.adapters.engines.jx.tree import JxError
from tracehint.limits import check, limit

__all__ = ["JxError", "evaluate"]


def evaluate(text: str, folder: Path | None = None, steps: int | None = None) -> Any:
    """The value of a JX document: None, bool, int, float, str, list and dict only.

    folder: the only directory (and what is below it) that `listdir()` may read; None: nothing.
    steps: how many evaluation steps are allowed, else the limit jx-steps. Names in the document's
    `define` object can be used everywhere in it. Raises JxError, InputError (limit jx-bytes).
    """
    check("jx-bytes", "the JX document", len(text))
    most = limit("jx-steps") if steps is None else steps
    try:
        return Evaluator(folder, most).document(parse(text))
    except (RecursionError, OverflowError, MemoryError):
        raise JxError("nested too deeply, or numbers too large") from None
