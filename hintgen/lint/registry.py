"""The lint rules: code -> module in tracehint.hintgen.lint.rules.

Adding a rule: write `rules/<name>.py` (docstring, RULE, check), add a line
here and a page `tests/lint/<CODE>.md`, run `make docs`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

FAMILIES = {
    "TP": "placement",
    "TD": "declaration",
    "TV": "volume",
    "TM": "metadata",
    "TH": "run health",
}

RULES: dict[str, str] = {
    "TP001": "broadcast_without_replicas",
    "TP002": "reduce_without_collocation",
    "TP003": "pipeline_placed_apart",
    "TP004": "scatter_straddling_blocks",
    "TV001": "temporary_never_deleted",
    "TV002": "output_never_read",
}

# Codes of earlier versions -> code of today.
REDIRECTS: dict[str, str] = {}


def load(code: str) -> ModuleType:
    """The module of a rule. Raises KeyError for a code that never existed."""
    code = REDIRECTS.get(code, code)
    return importlib.import_module(f"tracehint.hintgen.lint.rules.{RULES[code]}")
