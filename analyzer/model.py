"""The analysis in memory: one Arrow table per list of the JSON contract, keyed by integers.

Integer keys become the contract's string ids on output (`t1`, `f1`, `g1`).
Times are in seconds from the start of the run. A file row is one *version* of one file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

ANALYSIS_SCHEMA = "tracehint.analysis/1"

_RANGES = pa.list_(pa.list_(pa.int64(), 2))
_STRS = pa.list_(pa.string())
_WORD = pa.dictionary(pa.int32(), pa.string())  # few distinct values, many rows

TASKS = pa.schema(
    [
        ("task", pa.int64()),
        ("name", pa.string()),
        ("type", pa.string()),  # shared by tasks of one kind: rule, program or script name
        ("command", pa.string()),
        ("host", pa.string()),
        ("site", pa.string()),
        ("start_s", pa.float64()),
        ("end_s", pa.float64()),  # null: unknown
        ("exit_status", pa.int32()),  # 128 + signal when killed; null: unknown
        ("attempt", pa.int32()),  # 1 for the first
        ("processes", pa.int32()),
        ("engine", pa.bool_()),
        ("source", pa.string()),  # observed, declared, both
        ("group", pa.int64()),  # shared by the ranks of one MPI program; else null
        ("rank", pa.int32()),  # MPI rank of the task; else null
        ("cpu_s", pa.float64()),  # processor time of all its processes and threads; null: unknown
        ("io_wait_s", pa.float64()),  # part of its time spent waiting for files; null: unknown
    ]
)

# One row per file version.
FILES = pa.schema(
    [
        ("file", pa.int64()),
        ("lineage", pa.int64()),  # versions of one path share it
        ("version", pa.int32()),
        ("path", pa.binary()),  # relative to its data root, else absolute
        ("other_paths", pa.list_(pa.binary())),
        ("role", pa.string()),  # input, intermediate, output, scratch, software
        ("size_bytes", pa.int64()),  # at the end of the version; null: unknown
        ("deleted", pa.bool_()),  # gone at the end of the run
        ("exact_share", pa.float64()),  # share of its accessed bytes known exactly
        # tasks exchange data both ways through it, or it has too many versions: all are folded
        # into this row; null counts as false
        ("concurrent", pa.bool_()),
    ]
)

PRODUCERS = pa.schema(
    [
        ("file", pa.int64()),
        ("task", pa.int64()),
        ("bytes", pa.int64()),  # moved, including repeats
        ("unique_bytes", pa.int64()),  # length of the union of ranges
        ("owned_bytes", pa.int64()),  # bytes that it was the last to write when the version ended
        ("ranges", _RANGES),  # union, sorted, [start, end)
        ("how", _STRS),
        ("first_s", pa.float64()),
        ("last_s", pa.float64()),
        ("superseded", pa.bool_()),
    ]
)

CONSUMERS = pa.schema(
    [
        ("file", pa.int64()),
        ("task", pa.int64()),
        ("bytes", pa.int64()),
        ("unique_bytes", pa.int64()),
        ("cover", pa.float64()),  # unique_bytes / size_bytes; null: size unknown
        ("peek", pa.bool_()),
        ("ranges", _RANGES),
        ("how", _STRS),
        ("first_s", pa.float64()),
        ("last_s", pa.float64()),
    ]
)

EDGES = pa.schema(
    [
        ("edge", pa.int64()),
        ("producer", pa.int64()),
        ("file", pa.int64()),
        ("consumer", pa.int64()),
        ("bytes", pa.int64()),  # unique bytes of the producer that the consumer read
        ("via", pa.string()),  # data, engine_copy, declared
        ("order", pa.string()),  # certain, uncertain
    ]
)

# All labels that apply. `edge` is null for a label of the file itself; labels of a file are
# repeated on each of its edges to which they apply.
PATTERNS = pa.schema(
    [
        ("file", pa.int64()),
        ("edge", pa.int64()),
        ("pattern", _WORD),
        ("primary", pa.bool_()),
        ("confidence", pa.float64()),
        ("group", pa.int64()),  # reduce and distribute; else null
        ("evidence", _WORD),  # JSON object
        ("placement", _WORD),
        ("saves_bytes", pa.int64()),  # network bytes saved against the default placement
        ("saves_wait_bytes", pa.int64()),  # the same, on the busiest link while readers wait
        ("runner_up", _WORD),
        ("runner_up_saves_bytes", pa.int64()),
    ]
)

GROUPS = pa.schema(
    [
        ("group", pa.int64()),
        ("pattern", pa.string()),  # reduce, distribute
        ("task", pa.int64()),
        ("files", pa.list_(pa.int64())),
        ("bytes", pa.int64()),
        ("primary", pa.bool_()),
        ("evidence", pa.string()),  # JSON object
    ]
)

ANALYSIS_TABLES: dict[str, pa.Schema] = {
    "tasks": TASKS,
    "files": FILES,
    "producers": PRODUCERS,
    "consumers": CONSUMERS,
    "edges": EDGES,
    "patterns": PATTERNS,
    "groups": GROUPS,
}


@dataclass(frozen=True)
class Options:
    """Thresholds of the pattern definitions; the defaults are those of docs/patterns.md."""

    nodes: int | None = None  # None: hosts of the bundle if several, else concurrency, at least 2
    default_placement: str = "striped"  # striped, one-node, local
    peek_share: float = 0.05
    peek_bytes: int = 64 << 10
    header_bytes: int = 128 << 10
    header_share: float = 0.10
    header_readers: float = 0.90
    broadcast_slope: float = 0.5  # m >= 1 + slope (n - 1)
    scatter_max_m: float = 1.25
    gather_max_overlap: float = 0.10
    reduce_min_share: float = 0.25
    max_versions: int = 64
    call_cost_bytes: int = 64 << 10  # a hint on fewer bytes costs more than it saves
    ranges: bool = True
    data_roots: tuple[str, ...] = ()
    split: tuple[str, ...] = ()  # programs or types of tasks to look inside
    whole: tuple[str, ...] = ()  # those that stay one task
    ranks: bool | None = None  # each rank of an MPI program is a task; None: on several hosts
    sites: tuple[tuple[str, str], ...] = ()  # host or pattern of hosts -> site (analyzer/sites.py)
    # (slowest, fastest) known rate of a link in bytes per second; required for estimates in seconds
    link_rates: tuple[float, float] | None = None


PROC_TASK = pa.schema([("proc", pa.int64()), ("task", pa.int64())])
DECLARED_TASK = pa.schema([("declared", pa.string()), ("task", pa.int64())])


@dataclass(frozen=True)
class Segmentation:
    """The tasks of a run and what belongs to each.

    `tasks` has the schema TASKS, ordered by start; `proc_task` has one row per process epoch of
    the bundle; `declared_task` maps the `task` text of rows of `declared_tasks` to tasks, for
    the declared inputs and outputs. `notes` report other possible segmentations and their
    options. `makers`: see tasks/producing_programs.py.
    """

    tasks: pa.Table
    proc_task: pa.Table
    declared_task: pa.Table = field(default_factory=DECLARED_TASK.empty_table)
    notes: tuple[str, ...] = ()
    makers: tuple[dict[str, Any], ...] = ()


@dataclass
class Analysis:
    """Result of `analyzer.analyze`: `run` is the contract's `run` object, the rest are tables.

    `proc_task` and `declared_task` come from the Segmentation and join rows of the bundle to
    tasks. None: the analysis was read from JSON.
    """

    run: dict[str, Any]
    tasks: pa.Table
    files: pa.Table
    producers: pa.Table
    consumers: pa.Table
    edges: pa.Table
    patterns: pa.Table
    groups: pa.Table
    options: Options = field(default_factory=Options)
    proc_task: pa.Table | None = None
    declared_task: pa.Table | None = None

    def tables(self) -> dict[str, pa.Table]:
        """Return the seven tables by name."""
        return {name: getattr(self, name) for name in ANALYSIS_TABLES}
