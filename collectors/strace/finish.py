"""Map paths and descriptors to files, and convert the parser's final state to tables."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.collectors.strace.lexer import LexStats
from tracehint.collectors.strace.model import FdTable, FileRec, Ofd, OpenRow, Thread
from tracehint.collectors.strace.state import Node, State, normal

_SPECIAL = (  # prefix of a descriptor's annotation (strace -y), kind
    (b"pipe:", "pipe"),
    (b"socket:", "socket"),
    (b"anon_inode:", "other"),
    (b"/memfd:", "memfd"),
    (b"/dev/", "other"),
    (b"/proc/", "other"),
    (b"/sys/", "other"),
    (b"/dev/shm/", "file"),
)


def kind_of(note: bytes) -> str:
    """Return the kind of object (file, pipe, socket, ...) that an annotation or path names."""
    kind = "file" if note[:1] == b"/" else "socket"
    for start, name in _SPECIAL:
        if note.startswith(start):
            kind = name
    return kind


def absolute(thread: Thread, path: bytes, dirfd: bytes | None = None) -> bytes:
    """Return the absolute, normalised path; `dirfd` is the directory's path if it is known."""
    if path[:1] != b"/":
        base = dirfd or thread.fs.cwd
        path = base + b"/" + path if base != b"/" else b"/" + path
        if path[:1] != b"/":
            path = b"/" + path
    elif thread.fs.root:
        return normal(thread.fs.root + path)
    return normal(path)


def real(st: State, path: bytes, *, follow: bool = False) -> bytes:
    """Return the path with symbolic links resolved, as far as they are known."""
    path = st.names.resolve(path, follow=follow)
    look = st.settings.real_dir
    if look is None:
        return path
    folder, _, name = path.rpartition(b"/")
    node = st.names.find(folder or b"/")
    if node is not None and (node.fresh or node.file is not None):
        return path
    found = look(folder or b"/")
    return (found if found != b"/" else b"") + b"/" + name


def new_file(st: State, kind: str) -> FileRec:
    """Add a file of this kind; its other properties are unknown."""
    rec = FileRec(len(st.files) + 1, kind)
    st.files.append(rec)
    return rec


def bind(node: Node, rec: FileRec) -> None:
    """Make the name refer to this file."""
    old = node.file
    if old is not None and old is not rec:
        drop_name(old)
    if old is not rec:
        rec.links += 1
        rec.deleted = False
    node.file = rec
    node.absent = False


def drop_name(rec: FileRec) -> None:
    """Remove one of the file's names; without a name it is deleted."""
    rec.links -= 1
    if rec.links <= 0:
        rec.deleted = True


def file_at(st: State, path: bytes, kind: str, proc: int | None, t_ns: int) -> tuple[FileRec, bool]:
    """Return the file that the path names now, and whether its record is new."""
    node = st.names.node(path)
    if node.file is not None:
        return node.file, False
    seen = node.stat
    rec = st.by_inode.get(seen[:2]) if seen else None
    if rec is not None and not rec.deleted:
        bind(node, rec)  # another name of a known file: a hard link
        st.name_row(proc, rec, "open", path, None, t_ns)
        return rec, False
    rec = new_file(st, kind)
    if seen:
        rec.existed = True
        learn_stat(st, rec, *seen)
    elif node.absent:
        rec.existed = False
    bind(node, rec)
    return rec, True


def learn_stat(st: State, rec: FileRec, dev: int, ino: int, size: int) -> None:
    """Record device, inode and size from a stat call; a reused inode gets a new generation."""
    if rec.dev < 0:
        rec.dev, rec.ino = dev, ino
        before = st.by_inode.get((dev, ino))
        if before is not None and before is not rec:
            rec.generation = before.generation + 1
        st.by_inode[dev, ino] = rec
    if rec.size is None and rec.kind == "file":
        rec.size = size


def same_inode(st: State, ofd: Ofd, row: OpenRow | None, dev: int, ino: int) -> None:
    """Merge an open file, unless created or accessed, into the known file with fstat's inode."""
    rec = ofd.file
    known = st.by_inode.get((dev, ino))
    if rec.dev < 0 and known is not None and not known.deleted and known is not rec:
        if rec.created or (row is not None and (row.read_ops or row.write_ops)):
            return
        st.alias[rec.id] = known.id
        known.links += rec.links
        node = st.names.find(ofd.path)
        if node is not None and node.file is rec:
            node.file = known
        ofd.file = known
        if row is not None:
            row.file = known


def from_note(st: State, table: FdTable, fd: int, note: bytes, t_ns: int) -> Ofd:
    """Add an open description known only from a descriptor's annotation; its offset is inexact."""
    kind = kind_of(note)
    if kind == "pipe":
        rec = st.pipes.get(note)
        if rec is None:
            rec = st.pipes[note] = new_file(st, "pipe")
    elif kind in ("file", "other"):
        rec, first = file_at(st, note, kind, None, t_ns)
        if first and note[:1] == b"/":
            st.name_row(None, rec, "open", note, None, t_ns)
    else:
        rec = new_file(st, kind)
    ofd = Ofd(rec, note, 0)
    ofd.exact = False
    ofd.note = note
    table.fds[fd] = ofd
    return ofd


def lookup(st: State, thread: Thread, fd: int, note: bytes | None, t_ns: int) -> Ofd | None:
    """Return the descriptor's open description; the annotation reveals missed opens."""
    ofd = thread.table.fds.get(fd)
    if note is None:
        return ofd
    if ofd is None:
        return from_note(st, thread.table, fd, note, t_ns)
    if ofd.note is not note and ofd.note != note:
        if ofd.file.kind == "file" and note[:1] == b"/" and ofd.path != note:
            node = st.names.find(note)
            plain = note.removesuffix(b" (deleted)")
            if plain != ofd.path and (node is None or node.file is not ofd.file):
                return from_note(st, thread.table, fd, note, t_ns)
        ofd.note = note
    return ofd


_KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "dir"), (stat.S_ISFIFO, "pipe"))


@dataclass(slots=True)
class PathFacts:
    """lstat of a path after the run. `born_ns` None: the file system keeps no birth time."""

    dev: int
    ino: int
    size: int
    mode: int
    born_ns: int | None


Look = Callable[[bytes], PathFacts | None]


def look_at(path: bytes) -> PathFacts | None:
    """Return lstat of the path with its birth time, if the file system keeps one."""
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return None
    ino = info.st_ino - (1 << 64) if info.st_ino >= 1 << 63 else info.st_ino
    return PathFacts(info.st_dev, ino, info.st_size, info.st_mode, _birth_time(path))


def _birth_time(path: bytes) -> int | None:
    """Return statx's birth time in ns; Python has no os.statx yet."""
    buffer = ctypes.create_string_buffer(256)
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except AttributeError:
        return None
    at_fdcwd, nofollow, btime = -100, 0x100, 0x800
    if statx(at_fdcwd, ctypes.c_char_p(path), nofollow, btime, buffer) != 0:
        return None
    raw = buffer.raw
    if not int.from_bytes(raw[0:4], "little") & btime:
        return None
    seconds = int.from_bytes(raw[80:88], "little", signed=True)
    return seconds * 10**9 + int.from_bytes(raw[88:92], "little")


def finish(
    state: State,
    stats: LexStats,
    *,
    look: Look | None = None,
    started_ns: int = 0,
    shift_ns: int = 0,
) -> dict[str, pa.Table]:
    """Return all tables. `look`: lstat on the recording machine; `shift_ns`: added to all times."""
    created: set[int] = set()
    grown: dict[int, int] = {}
    if look is not None:
        grown = _complete_files(state, look)
        created = _find_creations(state, look, started_ns)
    _write_files(state)
    for (proc, folder, op), n in state.meta.items():
        failed = state.meta_errors.get((proc, folder, op), 0)
        state.out.add("metadata_ops", (proc, folder, op, n, failed))
    _write_losses(state, stats)
    tables = state.out.tables()
    tables["opens"] = _fix_opens(tables["opens"], state, created)
    tables["extents"] = _fix_extents(tables["extents"], state, grown)
    tables["names"] = _fix_names(tables["names"], state, created)
    if shift_ns:
        tables = {name: _shift(table, shift_ns) for name, table in tables.items()}
    return tables


def _paths(state: State) -> dict[int, bytes]:
    """Return one path per file that still has a name."""
    found: dict[int, bytes] = {}
    stack: list[tuple[bytes, Node]] = [(b"", state.names.root)]
    while stack:
        path, node = stack.pop()
        if node.file is not None:
            found.setdefault(node.file.id, path)
        stack.extend((path + b"/" + name, child) for name, child in node.children.items())
    return found


def _complete_files(state: State, look: Look) -> dict[int, int]:
    """Complete sizes and inodes; return the bytes to add to the offsets of blind appends."""
    grown: dict[int, int] = {}
    paths = _paths(state)
    for rec in state.files:
        path = paths.get(rec.id)
        seen = look(path) if path is not None and not rec.deleted else None
        if seen is None:
            continue
        if rec.dev >= 0 and rec.ino != seen.ino:
            continue  # replaced by a process outside the run
        rec.dev, rec.ino = seen.dev, seen.ino
        if not stat.S_ISREG(seen.mode) and rec.kind == "file":
            rec.kind = next((k for test, k in _KINDS if test(seen.mode)), "other")
        if rec.appended_blind and rec.size is not None and seen.size >= rec.size:
            grown[rec.id] = seen.size - rec.size
        if stat.S_ISREG(seen.mode):
            rec.size = seen.size
    return grown


def _find_creations(state: State, look: Look, started_ns: int) -> set[int]:
    """Return the opens with O_CREAT that created their file, according to its birth time."""
    created: set[int] = set()
    paths = _paths(state)
    for maybe in state.undecided_opens:
        rec = maybe.file
        path = paths.get(rec.id)
        seen = look(path) if path is not None and not rec.deleted else None
        if seen is None or seen.born_ns is None or seen.ino != rec.ino:
            continue
        rec.existed = seen.born_ns < started_ns
        if not rec.existed:
            created.add(maybe.open_id)
        elif maybe.truncated:
            state.extent(maybe.proc, rec, "truncate", "open", 0, 0, maybe.t_ns, maybe.open_id)
            state.truncated.add(maybe.open_id)
    return created


def _write_files(state: State) -> None:
    """Write the table of files, without sockets and merged files."""
    for rec in state.files:
        if rec.id in state.alias or rec.kind == "socket":
            continue
        state.out.add("files", _file_row(rec))


def _file_row(rec: FileRec) -> tuple[object, ...]:
    deleted = rec.deleted and rec.kind in ("file", "dir", "memfd", "other")
    return (
        rec.id,
        rec.dev,
        rec.ino,
        rec.generation,
        None,
        rec.kind,
        rec.size,
        deleted,
        rec.existed,
    )


def _write_losses(state: State, stats: LexStats) -> None:
    for (kind, detail), n in state.losses.items():
        state.out.add("losses", (None, kind, n, detail or None))
    if stats.bad:
        numbers = ", ".join(stats.bad_lines)
        more = "" if stats.bad <= len(stats.bad_lines) else ", ..."
        state.out.add("losses", (None, "log_lines", stats.bad, f"not understood: {numbers}{more}"))


def _renumber(column: pa.ChunkedArray, alias: dict[int, int]) -> pa.ChunkedArray:
    """Replace the ids of files that were merged into a known file."""
    if not alias or not len(column):
        return column
    for source in alias:
        target = source
        while target in alias:
            target = alias[target]
        alias[source] = target
    values = column.to_numpy().copy()
    keys = np.array(sorted(alias))
    to = np.array([alias[k] for k in keys.tolist()])
    place = np.clip(np.searchsorted(keys, values), 0, len(keys) - 1)
    hit = keys[place] == values
    values[hit] = to[place[hit]]
    return pa.chunked_array([pa.array(values, pa.int64())])


def _replace_column(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)


def _fix_opens(table: pa.Table, state: State, created: set[int]) -> pa.Table:
    table = _replace_column(table, "file", _renumber(table["file"], state.alias))
    for name, ids in (("created", created), ("truncated", state.truncated)):
        if ids:
            hit = pc.is_in(table["open"], value_set=pa.array(sorted(ids), pa.int64()))
            table = _replace_column(table, name, pc.or_(table[name], hit))
    return table


def _fix_extents(table: pa.Table, state: State, grown: dict[int, int]) -> pa.Table:
    """Move appends to a file of unknown size, which were counted from its old end."""
    table = _replace_column(table, "file", _renumber(table["file"], state.alias))
    if not grown or not len(table):
        return table
    files = table["file"].to_numpy()
    keys = np.array(sorted(grown))
    place = np.clip(np.searchsorted(keys, files), 0, len(keys) - 1)
    moved = np.array([grown[k] for k in keys.tolist()])[place]
    write = pc.equal(table["op"], "write").to_numpy(zero_copy_only=False)
    mmap = pc.equal(table["how"], "mmap").to_numpy(zero_copy_only=False)
    exact = table["exact"].to_numpy(zero_copy_only=False)
    hit = (keys[place] == files) & write & ~exact & ~mmap
    start = table["start"].to_numpy() + np.where(hit, moved, 0)
    table = _replace_column(table, "start", pa.chunked_array([pa.array(start, pa.int64())]))
    return _replace_column(table, "exact", pa.chunked_array([pa.array(exact | hit)]))


def _fix_names(table: pa.Table, state: State, created: set[int]) -> pa.Table:
    table = _replace_column(table, "file", _renumber(table["file"], state.alias))
    rows = {m.name_seq for m in state.undecided_opens if m.open_id in created}
    if not rows:
        return table
    hit = pc.is_in(table["seq"], value_set=pa.array(sorted(rows), pa.int64()))
    return _replace_column(table, "op", pc.if_else(hit, "create", table["op"]))


def _shift(table: pa.Table, by: int) -> pa.Table:
    """Add a constant to every time column (`*_ns`)."""
    for name in table.schema.names:
        if name.endswith("_ns"):
            table = _replace_column(table, name, pc.add(table[name], pa.scalar(by, pa.int64())))
    return table
