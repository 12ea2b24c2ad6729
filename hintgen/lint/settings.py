"""Thresholds of the lint rules in one immutable place.

Every field can be set in `[tool.tracehint.lint]` of `pyproject.toml` or in
`[lint]` of `tracehint.toml`, with dashes for underscores.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Defaults say below what size or count a finding would not repay reading it."""

    block_size: int = 4 * MIB  # of the store, where the trace does not tell
    min_bytes: int = 64 << 10  # smaller savings do not repay the call that sets a hint
    min_storage_bytes: int = 1 * MIB  # kept or unread data below this is left alone
    min_gb_hours: float = 0.1
    tiny_file_bytes: int = 64 << 10
    tiny_file_count: int = 100
    tiny_file_share: float = 0.5  # of all workflow files
    used_share: float = 0.5  # a file of which less was read counts as partly used
    reread_factor: float = 1.5  # bytes read / distinct bytes
    small_op_bytes: int = 4096
    small_op_count: int = 1000
    small_op_share: float = 0.5  # of the operations on the file
    random_ops: int = 100
    random_share: float = 0.5  # of the operations that did not follow the one before
    result_share: float = 0.05  # what the last tasks write of what they read, to be only a look
    stat_ops_per_file: float = 20.0
    storm_ops: int = 1000
    hot_dir_share: float = 0.5  # of all metadata operations of the run
    pull_threshold: int = 0  # of Confuga's URI, bytes; 0: no Confuga
    unbalanced_factor: float = 2.0  # busiest consumer / mean
    straggler_factor: float = 2.0  # of the median of its task type, in time and in bytes
    straggler_tasks: int = 4  # fewer tasks of one type have no meaningful median
    straggler_seconds: float = 1.0
    away_share: float = 0.5  # of a task's input that lay on another host
    central_ops_per_node: int = 500
    central_nodes: int = 32
    pipeline_share: float = 0.5  # of the intermediate bytes that stay in one-to-one chains
