"""The directory that a workflow lies in, wherever its run was started.

`make -C wf`, `sh wf/run.sh` and `sh -c "cd wf && make"` from the parent are the run that
`make` in wf is: the names of its files, and so rules and findings, must be the same.
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


_MAX_WORDS = 1000  # of the command
_MAX_FOLDERS = 10_000  # working directories of tasks; more are made by an engine, one per task


def base_folder(bundle: Bundle, segmented: Segmentation, worked: set[bytes], cwd: bytes) -> bytes:
    """The directory at or above which no data of the run lies: `cwd`, where it was started, or
    one below it. `worked`: see `worked_in`.

    That is where the tasks worked, if all of them worked at or below it, else the directory of
    the script or workflow file that the command names; and only if everything that the run read
    or wrote below `cwd` lies there. Directories that the run made itself are its data.
    """
    data: list[bytes] | None = None
    for folder in (_workplace(worked, cwd), _script_folder(bundle, segmented, cwd)):
        if folder is None or folder == cwd or not below(folder, cwd):
            continue
        if data is None:
            data = _data(bundle, processes_of(segmented, engine=False), cwd)
        if data and all(below(path, folder) for path in data):
            return folder
    return cwd


def workplaces(worked: set[bytes], cwd: bytes) -> set[bytes]:
    """Directories outside `cwd` in which tasks worked, the outermost of each."""
    outside = sorted(f for f in worked if not below(f, cwd) and not below(cwd, f))
    return {f for f in outside if not any(below(f, other) and f != other for other in outside)}


def worked_in(bundle: Bundle, segmented: Segmentation) -> set[bytes]:
    """The directories in which tasks that are no engines began, as far as they used data."""
    return _folders(bundle, processes_of(segmented, engine=False))


def below(path: bytes, root: bytes) -> bool:
    """Whether a path is a directory or lies in it."""
    return path == root or path.startswith(root.rstrip(b"/") + b"/")


def processes_of(segmented: Segmentation, *, engine: bool) -> pa.Array:
    """The processes of engines, or of all other tasks."""
    chosen = segmented.tasks.column("engine")
    tasks = segmented.tasks.filter(chosen if engine else pc.invert(chosen)).column("task")
    inside = pc.is_in(segmented.proc_task.column("task"), value_set=tasks.combine_chunks())
    return segmented.proc_task.filter(inside).column("proc").combine_chunks()


def _folders(bundle: Bundle, procs: pa.Array) -> set[bytes]:
    """Where those of the processes began that used data, without directories that the run made."""
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
    """Which of the opens read or wrote something."""
    counters = (pc.greater(opens.column(name), 0) for name in ("read_ops", "write_ops"))
    return pc.fill_null(pc.or_(pc.or_(*counters), opens.column("created")), False)


def _is_within(folder: bytes, made: set[bytes]) -> bool:
    while folder not in (b"/", b""):
        if folder in made:
            return True
        folder = posixpath.dirname(folder)
    return False


def _workplace(worked: set[bytes], cwd: bytes) -> bytes | None:
    """The one directory below `cwd` that holds all in which tasks worked, and is one of them."""
    inside = [f for f in worked if below(f, cwd)]
    common = posixpath.commonpath(inside) if inside else None
    return common if common in inside else None


def _script_folder(bundle: Bundle, segmented: Segmentation, cwd: bytes) -> bytes | None:
    """The directory of the last file among the command's words that only engines opened."""
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
    """The command's words as paths from `cwd`, each followed by itself without symbolic links:
    so the kernel knows files. Where the run was elsewhere there are no links to be found."""
    words = [w.encode("utf-8", "surrogateescape") for w in manifest.command[1:]]
    words = [w for w in words[-_MAX_WORDS:] if w and len(w) < 4096 and b"\0" not in w]
    named = [posixpath.normpath(posixpath.join(cwd, word)) for word in words]
    return [path for name in named for path in (name, posixpath.realpath(name))]


def _data(bundle: Bundle, jobs: pa.Array, cwd: bytes) -> list[bytes]:
    """Folders below `cwd` of what tasks used and of what anybody wrote there."""
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
