"""The trace bundle's tables: raw facts only, one Arrow schema each.

Tasks, file versions and labels are derived later by the analyzer. Times are
int64 nanoseconds since the Unix epoch on the recording host's clock. Byte
ranges are half open, [start, start + length). Paths, arguments and
environment values are binary: Unix names are bytes, not text.

Identifiers (`proc`, `file`, `open`) are int64 and unique inside one bundle;
`merge` renumbers.
"""

from __future__ import annotations

import pyarrow as pa

_HOST = pa.field("host", pa.string(), nullable=False)


def _schema(*fields: tuple[str, pa.DataType] | tuple[str, pa.DataType, bool]) -> pa.Schema:
    """Return a schema with the host column first; a third item True means nullable."""
    rest = [pa.field(f[0], f[1], nullable=len(f) == 3 and bool(f[2])) for f in fields]
    return pa.schema([_HOST, *rest])


_I64, _I32, _STR, _BIN, _BOOL = pa.int64(), pa.int32(), pa.string(), pa.binary(), pa.bool_()

# One row per exec epoch of a process: a fork starts one, an exec ends it and starts the next.
PROCESSES = _schema(
    ("proc", _I64),
    ("parent", _I64, True),  # epoch that forked this process; null for the root command
    ("prev", _I64, True),  # epoch of the same process before its exec; null after a fork
    ("pid", _I32),
    ("uid", _I32),
    ("start_ns", _I64),
    ("end_ns", _I64, True),  # null: still running when the recorder stopped
    ("exit_code", _I32, True),  # set on the last epoch of a process only
    ("exit_signal", _I32, True),
    ("exe", _BIN, True),
    ("argv", pa.list_(_BIN)),  # empty until the process execs; then inherited text is not copied
    ("cwd", _BIN, True),  # at the start of the epoch
    ("env", pa.list_(pa.struct([("name", _STR), ("value", _BIN)]))),  # ENV_MARKERS only
    ("cpu_ns", _I64, True),  # processor time of all its threads in the epoch; null: unknown
    ("io_ns", _I64, True),  # time inside its calls on files, summed; null: not measured
)

# One row per object that a descriptor can refer to, as the kernel identifies it.
FILES = _schema(
    ("file", _I64),
    ("dev", _I64),
    ("ino", _I64),
    ("generation", _I64),
    ("fstype", _STR, True),
    ("kind", _STR),  # FILE_KINDS
    ("size_bytes", _I64, True),  # last size seen; null: unknown
    ("deleted", _BOOL),  # no name left at the end
    ("existed", _BOOL, True),  # before its first use in the run; null: unknown
)

# Every name that a file had, in order. A rename of a directory has the directory's file id.
NAMES = _schema(
    ("seq", _I64),
    ("t_ns", _I64),
    ("proc", _I64, True),
    ("file", _I64),
    ("op", _STR),  # NAME_OPS
    ("path", _BIN),  # absolute, as resolved by the kernel
    ("new_path", _BIN, True),  # rename, exchange, link: the other name; symlink: its target
)

# One row per process epoch, file and open-file session (also for inherited and passed descriptors).
OPENS = _schema(
    ("open", _I64),
    ("proc", _I64),
    ("file", _I64),
    ("path", _BIN),
    ("fd", _I32),
    ("flags", _I32),  # O_* as given to open
    ("via", _STR),  # OPEN_VIA
    ("created", _BOOL),  # this open created the file
    ("truncated", _BOOL),  # O_TRUNC on a file that had bytes
    ("size_at_open", _I64, True),
    ("open_ns", _I64),
    ("close_ns", _I64, True),
    ("first_ns", _I64, True),  # first operation; null: none
    ("last_ns", _I64, True),
    ("read_ops", _I64),
    ("read_bytes", _I64),
    ("write_ops", _I64),
    ("write_bytes", _I64),
    ("seq_ops", _I64),  # operations that began where the previous one ended
    ("small_ops", _I64),  # operations of less than 4 KiB
)

# Runs of accesses in the order in which they happened. A run is `count` pieces of `length`
# bytes, `stride` apart; contiguous accesses are one piece (count 1, ops >= 1).
EXTENTS = _schema(
    ("open", _I64, True),
    ("proc", _I64),
    ("file", _I64),
    ("op", _STR),  # EXTENT_OPS
    ("how", _STR),  # EXTENT_HOW
    ("start", _I64),  # truncate: the new size
    ("length", _I64),
    ("stride", _I64),
    ("count", _I64),
    ("ops", _I64),
    ("bytes", _I64),  # bytes moved, repeats counted
    ("first_ns", _I64),
    ("last_ns", _I64),
    ("exact", _BOOL),  # false: an upper bound (a mapped range, a counter without offsets)
    ("rank", _I32, True),  # MPI rank, where known
)

METADATA_OPS = _schema(
    ("proc", _I64),
    ("dir", _BIN, True),  # null: not known per directory
    ("op", _STR),  # METADATA_OPS_KINDS
    ("count", _I64),
    ("errors", _I64),
)

# Facts about tasks as stated by TRACEHINT_TASK, `tracehint task`, batch systems.
MARKS = _schema(
    ("t_ns", _I64),
    ("proc", _I64, True),
    ("pid", _I32, True),
    ("kind", _STR),  # task_begin, task_end
    ("name", _STR),
    ("source", _STR),
)

# Stated facts about a file: layout on the store, objects inside a container format.
ATTRIBUTES = _schema(
    ("file", _I64),
    ("name", _STR),  # lustre_stripe_size, hdf5.dataset, user.DP ...
    ("value", _STR),
)

# Outcome of hints at creation: one row per hint and created file.
SETTINGS = _schema(
    ("t_ns", _I64),
    ("pid", _I32),  # of the process that created the file; 0: unknown
    ("path", _BIN),  # absolute, at its creation
    ("rule", _STR),  # of the hint file
    ("pattern", _STR),
    ("hint", _STR),  # name=value
    ("key", _STR),  # the store's name for it; empty: it has none
    ("value", _BIN),
    ("state", _STR),  # SETTING_STATES
    ("error", _I32, True),  # errno of the store, if it refused
    ("why", _STR),  # it is not in force; empty if it is
)

LOSSES = _schema(
    ("proc", _I64, True),
    ("kind", _STR),  # LOSS_KINDS
    ("count", _I64),
    ("detail", _STR, True),
)

# What a workflow engine's graph or log declares; joined to the observed tasks by the analyzer.
DECLARED_TASKS = _schema(
    ("task", _STR),
    ("name", _STR),
    ("type", _STR),
    ("command", _BIN),
    ("workdir", _BIN, True),
    ("pid", _I32, True),
    ("start_ns", _I64, True),
    ("end_ns", _I64, True),
    ("exit_status", _I32, True),
    ("attempt", _I32),
    ("parents", pa.list_(_STR)),
    ("read_bytes", _I64, True),
    ("written_bytes", _I64, True),
    ("engine", _STR),
    ("cpu_ns", _I64, True),
    ("cores", _I32, True),  # requested
    ("memory_bytes", _I64, True),  # requested
    ("peak_bytes", _I64, True),  # of memory, as the engine measured it
)
DECLARED_IO = _schema(
    ("task", _STR),
    ("path", _BIN),
    ("direction", _STR),  # in, out
    ("size_bytes", _I64, True),
)

# Columns added in later versions: null if an older bundle does not have them.
ADDED = {
    "processes": ("cpu_ns", "io_ns"),
    "declared_tasks": ("cpu_ns", "cores", "memory_bytes", "peak_bytes"),
}

TABLES: dict[str, pa.Schema] = {
    "processes": PROCESSES,
    "files": FILES,
    "names": NAMES,
    "opens": OPENS,
    "extents": EXTENTS,
    "metadata_ops": METADATA_OPS,
    "marks": MARKS,
    "losses": LOSSES,
    "attributes": ATTRIBUTES,
    "declared_tasks": DECLARED_TASKS,
    "declared_io": DECLARED_IO,
    "settings": SETTINGS,
}

FILE_KINDS = ("file", "dir", "pipe", "socket", "memfd", "other")
NAME_OPS = ("open", "create", "rename", "exchange", "link", "unlink", "symlink", "mkdir", "rmdir")
OPEN_VIA = ("open", "inherited", "passed", "pipe", "memfd", "log")
EXTENT_OPS = ("read", "write", "truncate", "deallocate")
EXTENT_HOW = (
    "read", "write", "mmap", "copy_file_range", "sendfile", "splice", "io_uring", "aio",
    "clone", "fallocate", "open", "truncate", "counters",
)  # fmt: skip  # a table
METADATA_OPS_KINDS = (
    "stat",
    "failed_open",
    "readdir",
    "unlink",
    "mkdir",
    "rename",
    "chmod",
    "xattr",
    "access",
)
# unsaid: no such setting in the store; missed: creation not observed; lost: set, but gone later
SETTING_STATES = ("set", "refused", "unsaid", "missed", "lost")
LOSS_KINDS = (
    "lifecycle_records", "extent_records", "open_table_full", "path_cut", "argv_cut",
    "unknown_calls", "recursion_misses", "credentials_exec", "log_lines", "damaged_segment",
    "truncated_log", "unreadable_log", "log_limits", "killed_process", "killed_recorder",
    "spool_write", "unfollowed_tasks", "missing_rows", "outliving_processes",
    "unentered_programs", "container_names",
)  # fmt: skip  # a table
# Environment variables that name a task or what it requested; nothing else of the environment is
# recorded.
ENV_MARKERS = (
    "TRACEHINT_TASK", "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
    "SLURM_STEP_ID", "SLURM_PROCID", "PBS_JOBID", "PBS_ARRAY_INDEX", "LSB_JOBID",
    "LSB_JOBINDEX", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PARALLEL_SEQ", "MAKELEVEL",
    "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU",
)  # fmt: skip  # a table
