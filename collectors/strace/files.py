"""Paths and file identity: which file a path or descriptor stands for."""

from __future__ import annotations

from tracehint.collectors.strace.model import FdTable, FileRec, Ofd, OpenRow, Thread
from tracehint.collectors.strace.names import Node, normal
from tracehint.collectors.strace.state import State

_KINDS = (  # beginnings of what -y prints for descriptors that are not files
    (b"pipe:", "pipe"), (b"socket:", "socket"), (b"anon_inode:", "other"), (b"/memfd:", "memfd"),
    (b"/dev/", "other"), (b"/proc/", "other"), (b"/sys/", "other"), (b"/dev/shm/", "file"),
)  # fmt: skip  # a table


def kind_of(note: bytes) -> str:
    """What an annotation or path stands for, by its text."""
    kind = "file" if note[:1] == b"/" else "socket"
    for start, name in _KINDS:
        if note.startswith(start):
            kind = name
    return kind


def absolute(thread: Thread, path: bytes, dirfd: bytes | None = None) -> bytes:
    """The absolute, normal path; `dirfd` is the directory's path where it is known."""
    if path[:1] != b"/":
        base = dirfd or thread.fs.cwd
        path = base + b"/" + path if base != b"/" else b"/" + path
        if path[:1] != b"/":
            path = b"/" + path
    elif thread.fs.root:
        return normal(thread.fs.root + path)
    return normal(path)


def real(st: State, path: bytes, *, follow: bool = False) -> bytes:
    """The path with symbolic links resolved, as far as they are known."""
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
    """A file of which nothing else is known yet."""
    rec = FileRec(len(st.files) + 1, kind)
    st.files.append(rec)
    return rec


def bind(node: Node, rec: FileRec) -> None:
    """The name now means this file."""
    old = node.file
    if old is not None and old is not rec:
        drop_name(old)
    if old is not rec:
        rec.links += 1
        rec.deleted = False
    node.file = rec
    node.absent = False


def drop_name(rec: FileRec) -> None:
    """The file lost one of its names."""
    rec.links -= 1
    if rec.links <= 0:
        rec.deleted = True


def file_at(st: State, path: bytes, kind: str, proc: int | None, t_ns: int) -> tuple[FileRec, bool]:
    """The file that the path names now, and whether this is the first that is heard of it."""
    node = st.names.node(path)
    if node.file is not None:
        return node.file, False
    seen = node.stat
    rec = st.by_inode.get(seen[:2]) if seen else None
    if rec is not None and not rec.deleted:
        bind(node, rec)  # another name of a file that is known: a hard link
        st.name_row(proc, rec, "open", path, None, t_ns)
        return rec, False
    rec = new_file(st, kind)
    if seen:
        rec.existed = True
        learn(st, rec, *seen)
    elif node.absent:
        rec.existed = False
    bind(node, rec)
    return rec, True


def learn(st: State, rec: FileRec, dev: int, ino: int, size: int) -> None:
    """Note device, inode and size that a stat call showed."""
    if rec.dev < 0:
        rec.dev, rec.ino = dev, ino
        before = st.by_inode.get((dev, ino))
        if before is not None and before is not rec:
            rec.generation = before.generation + 1
        st.by_inode[dev, ino] = rec
    if rec.size is None and rec.kind == "file":
        rec.size = size


def same_inode(st: State, ofd: Ofd, row: OpenRow | None, dev: int, ino: int) -> None:
    """fstat showed that an open file is one that is known under another name (or is another)."""
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
    """An open description known only from a descriptor's annotation: its offset is a guess."""
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
    """The descriptor's open description; an annotation corrects what the log left out."""
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
