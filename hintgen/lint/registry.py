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
    "TP005": "gather_sharing_blocks",
    "TP006": "distribute_unbalanced",
    "TP007": "consumer_away_from_data",
    "TP008": "unfitting_hint",
    "TP009": "late_hint",
    "TP010": "pull_threshold",
    "TD001": "undeclared_input",
    "TD002": "undeclared_output",
    "TD003": "unread_declared_input",
    "TD004": "over_declared_directory",
    "TD005": "dependency_without_data",
    "TV001": "temporary_never_deleted",
    "TV002": "output_never_read",
    "TV003": "partly_used_file",
    "TV004": "reread_file",
    "TV005": "small_operations",
    "TV006": "random_access",
    "TV007": "duplicated_file",
    "TV008": "temporary_kept_long",
    "TM001": "many_tiny_files",
    "TM002": "stat_storm",
    "TM003": "failed_opens",
    "TM004": "directory_hot_spot",
    "TM005": "multisite_metadata",
    "TH001": "lost_events",
    "TH002": "blind_spot",
    "TH003": "retried_task",
    "TH004": "io_straggler",
    "TH005": "failed_task_used",
    "TH006": "read_while_written",
    "TH007": "concurrently_shared_file",
}

# Codes of earlier versions -> code of today.
REDIRECTS: dict[str, str] = {}


def load(code: str) -> ModuleType:
    """The module of a rule. Raises KeyError for a code that never existed."""
    code = REDIRECTS.get(code, code)
    return importlib.import_module(f"tracehint.hintgen.lint.rules.{RULES[code]}")
