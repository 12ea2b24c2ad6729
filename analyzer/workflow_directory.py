"""Directory of a workflow, independent of where its run was started.

`make -C wf`, `sh wf/run.sh` and `sh -c "cd wf && make"` in the parent directory are the same run
as `make` in wf: the names of its files, and so rules and findings, must be the same.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import distinct, numbers
from tracehint.analyzer.path_rules import data_names, looks_like_data
from tracehint.schemas.compact import different, plain, wide

if TYPE_CHECKING:
    from tracehint.analyzer.model import Segmentation
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle


_MAX_WORDS = 1000  # words of the command
_MAX_FOLDERS = 10_000  # of tasks; with more, an engine creates one per task


def base_folder(bundle: Bundle, segmented: Segmentation, worked: set[bytes], cwd: bytes) -> bytes:
    """Return the base directory of the run's data: `cwd`, where it was started, or one below it.
    `worked`: see `worked_in`.

    One below is the working directory that contains those of all tasks, else the directory of the
    script or workflow file named in the command, provided that everything that the run read or
    wrote below `cwd` is inside. Directories that the run itself created are its data.
    """
    data: list[bytes] | None = None
    for folder in (_common_workplace(worked, cwd), _script_folder(bundle, segmented, cwd)):
        if folder is None or folder == cwd or not below(folder, cwd):
            continue
        if data is None:
            data = _data_folders(bundle, processes_of(segmented, engine=False), cwd)
        if data and all(below(path, folder) for path in data):
            return folder
    return cwd


def workplaces(worked: set[bytes], cwd: bytes) -> set[bytes]:
    """Return the outermost working directories of tasks outside `cwd` (and not above it)."""
    outside = sorted(f for f in worked if not below(f, cwd) and not below(cwd, f))
    return {f for f in outside if not any(below(f, other) and f != other for other in outside)}


def worked_in(bundle: Bundle, segmented: Segmentation) -> set[bytes]:
    """Return the directories in which non-engine processes that used data started."""
    return _start_folders(bundle, processes_of(segmented, engine=False))


def below(path: bytes, root: bytes) -> bool:
    """Whether a path is `root` or below it."""
    return path == root or path.startswith(root.rstrip(b"/") + b"/")


def processes_of(segmented: Segmentation, *, engine: bool) -> pa.Array:
    """Return the processes of engines, or of all other tasks."""
    chosen = segmented.tasks.column("engine")
    tasks = segmented.tasks.filter(chosen if engine else pc.invert(chosen)).column("task")
    inside = pc.is_in(segmented.proc_task.column("task"), value_set=tasks.combine_chunks())
    return segmented.proc_task.filter(inside).column("proc").combine_chunks()


def _start_folders(bundle: Bundle, procs: pa.Array) -> set[bytes]:
    """Return where those processes started that used data, except directories the run created."""
    table, opens = bundle.tables["processes"], bundle.tables["opens"]
    proc = numbers(opens, "proc")
    chosen = _opens_with_data(opens).to_numpy() & np.isin(
        proc, procs.to_numpy(zero_copy_only=False)
    )
    chosen &= data_names(opens.column("path"))
    users = pa.array(distinct(proc[chosen]), pa.int64())
    rows = table.filter(pc.is_in(wide(table.column("proc")), value_set=users))
    found = pc.unique(plain(rows.column("cwd")).drop_null())
    if len(found) > _MAX_FOLDERS:
        return set()
    names = bundle.tables["names"]
    made = plain(names.filter(pc.equal(names.column("op"), "mkdir")).column("path"))
    inside = set(pc.unique(made).to_pylist())
    return {f for f in found.to_pylist() if f[:1] == b"/" and not _is_within(f, inside)}


def _opens_with_data(opens: pa.Table) -> Any:
    """Return which opens read, wrote or created a file."""
    counters = (pc.greater(opens.column(name), 0) for name in ("read_ops", "write_ops"))
    return pc.fill_null(pc.or_(pc.or_(*counters), opens.column("created")), False)


def _is_within(folder: bytes, made: set[bytes]) -> bool:
    while folder not in (b"/", b""):
        if folder in made:
            return True
        folder = posixpath.dirname(folder)
    return False


def _common_workplace(worked: set[bytes], cwd: bytes) -> bytes | None:
    """Return the task working directory below `cwd` that contains all the others, if any."""
    inside = [f for f in worked if below(f, cwd)]
    common = posixpath.commonpath(inside) if inside else None
    return common if common in inside else None


def _script_folder(bundle: Bundle, segmented: Segmentation, cwd: bytes) -> bytes | None:
    """Return the directory of the last file named in the command that only engines opened."""
    paths = script_names(bundle.manifest, cwd)
    if not paths:
        return None
    opens = bundle.tables["opens"]
    engines = pc.is_in(wide(opens.column("proc")), value_set=processes_of(segmented, engine=True))
    hit = pc.is_in(plain(opens.column("path")), value_set=pa.array(paths, pa.binary()))
    seen = [
        set(plain(opens.filter(pc.and_(hit, who)).column("path")).to_pylist())
        for who in (engines, pc.invert(engines))
    ]
    scripts = [p for p in paths if p in seen[0] and p not in seen[1]]
    return posixpath.dirname(scripts[-1]) if scripts else None


def script_names(manifest: Manifest, cwd: bytes) -> list[bytes]:
    """Return the command's words as paths from `cwd`, each followed by its form without symbolic
    links, as the kernel reports files. Links of a run on another machine are not resolved."""
    words = [w.encode("utf-8", "surrogateescape") for w in manifest.command[1:]]
    words = [w for w in words[-_MAX_WORDS:] if w and len(w) < 4096 and b"\0" not in w]
    named = [posixpath.normpath(posixpath.join(cwd, word)) for word in words]
    return [path for name in named for path in (name, posixpath.realpath(name))]


def _data_folders(bundle: Bundle, jobs: pa.Array, cwd: bytes) -> list[bytes]:
    """Return the folders below `cwd` of files that tasks read or that any process wrote."""
    opens, names = bundle.tables["opens"], bundle.tables["names"]
    wrote = pc.or_(pc.greater(opens.column("write_ops"), 0), opens.column("created"))
    read = pc.greater(opens.column("read_ops"), 0)
    read = pc.and_(read, pc.is_in(wide(opens.column("proc")), value_set=jobs))
    made = pc.is_in(names.column("op"), value_set=pa.array(["create", "rename", "link"]))
    kept = names.filter(made)
    parts: list[Any] = [
        different(opens.column("path").filter(pc.or_(wrote, read))),
        plain(kept.column("path")),
        plain(kept.column("new_path")).drop_null(),
    ]
    every = pa.chunked_array([c for part in parts for c in part.chunks], pa.binary())
    paths = pc.unique(every.drop_null())
    paths = paths.filter(pc.starts_with(paths, cwd.rstrip(b"/") + b"/"))
    paths = paths.filter(pa.array(looks_like_data(paths), pa.bool_()))
    folders = pc.replace_substring_regex(paths, rb"(?s)/[^/]*$", b"")
    return [folder or b"/" for folder in pc.unique(folders).to_pylist()]
