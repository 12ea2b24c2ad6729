"""Names of files over time: from first opens of paths and from calls that change names.

The file of a rename or unlink is known from earlier opens of its path, or from
the file that the loader found under the new name, or from later opens of the
new name. The loop (NameReplay.replay) runs over calls that change names and over first
opens of the paths in them, not over all opens.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.layout import filter_records, is_in, take_records
from tracehint.schemas.spool.opens import Sessions, dev_of
from tracehint.schemas.spool.read import Spool

S_IFMT, S_IFDIR, S_IFREG = 0o170000, 0o040000, 0o100000
_NAMELESS = 0o20000000  # __O_TMPFILE: the kernel shows /dir/#inode, which is in no directory
_DESCRIPTOR = re.compile(rb"/proc/\d+/fd/(\d+)")  # by which such a file is linked


@dataclass
class NamedFile:
    """A file that the run never opened, known by name only."""

    dev: int
    ino: int
    mode: int
    existed: bool


@dataclass
class Names:
    """Rows of `names`, truncations by path, and files that were deleted or never opened."""

    rows: list[tuple[int, int, int, str, bytes, bytes | None]] = field(default_factory=list)
    truncated: list[tuple[int, int, int, int]] = field(default_factory=list)  # t, proc, file, size
    extra: list[NamedFile] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    firsts: pa.Table | None = None  # first open of each (file, path): t_ns, proc, file, op, path


class NameReplay:
    """Tracks the names of every file; files that are known by name only become `extra`."""

    def __init__(self, out: Names, ep: Sessions) -> None:
        self.out, self.known = out, len(ep.files)
        self.bound: dict[bytes, int] = {}
        self.names_left: dict[int, int] = {}
        self.alias: dict[int, int] = {}
        self.covered: dict[tuple[bytes, int], int] = {}  # hidden by a mount over the name
        self.dev_ino: dict[tuple[int, int], list[int]] = {}
        self._devices, self._files, self._sessions = dev_of(ep.files["dev"]), ep.files, ep

    def replay(
        self, spool: Spool, events: Any, old: list[bytes], new: list[bytes], firsts: pa.Table
    ) -> None:
        """Process events and first opens, merged by time."""
        self._fill_dev_ino(events)
        times = spool.wall(events["t_ns"]).tolist()
        sights = firsts.to_pydict()
        at = 0
        for i, t in enumerate(times):
            while at < len(sights["t_ns"]) and sights["t_ns"][at] <= t:
                self._apply_first_open(sights["path"][at], sights["file"][at])
                at += 1
            self._event(t, events[i], old[i], new[i])
        for later in range(at, len(sights["t_ns"])):
            self._apply_first_open(sights["path"][later], sights["file"][later])
        rows = self.out.rows
        self.out.rows = [(t, p, self._real(f), op, a, b) for t, p, f, op, a, b in rows]
        self.out.truncated = [(t, p, self._real(f), n) for t, p, f, n in self.out.truncated]
        self.out.deleted = {self._real(f) for f, left in self.names_left.items() if left <= 0}

    def _fill_dev_ino(self, events: Any) -> None:
        """Index known files by (device, inode), only for inodes that occur in the events."""
        inos = self._files["ino"]
        real = (self._files["state"] & lay.PIPE) == 0
        for i in np.flatnonzero(is_in(inos, events["ino"]) & real).tolist():
            self.dev_ino.setdefault((int(self._devices[i]), int(inos[i])), []).append(i + 1)

    def _real(self, file: int) -> int:
        while file in self.alias:
            file = self.alias[file]
        return file

    def _bind(self, path: bytes, file: int) -> None:
        self._unbind(path)
        self.bound[path] = file
        self.names_left[file] = self.names_left.get(file, 0) + 1

    def _unbind(self, path: bytes) -> None:
        gone = self.bound.pop(path, None)
        if gone is not None:
            gone = self._real(gone)
            self.names_left[gone] = self.names_left.get(gone, 0) - 1

    def _apply_first_open(self, path: bytes, file: int) -> None:
        if b"/#" in path and self._files["flags"][file - 1] & _NAMELESS:
            return
        before = self._real(self.bound.get(path, 0))
        if before > self.known:  # known by name only so far: it is this file
            self.alias[before] = file
            self.names_left[file] = self.names_left.get(file, 0) + self.names_left.pop(before, 0)
        elif before != file:
            if before and self._devices[before - 1] != self._devices[file - 1]:
                self.covered[path, before] = self.bound.pop(path)  # by a mount: not deleted
            shown = self.covered.pop((path, file), None)
            if shown is None:
                self._bind(path, file)
            else:
                self._unbind(path)
                self.bound[path] = shown

    def _event(self, t: int, event: Any, old: bytes, new: bytes) -> None:
        op = lay.NAME_OPS[int(event["op"])]
        proc = int(event["epoch"])
        if op == "truncate":
            file = self._subject(event, old, existed=True)
            self.out.truncated.append((t, proc, file, int(event["size"])))
            return
        if op == "exchange":
            one = self._subject(event, old, existed=True)
            two = self._real(self.bound.get(new, 0)) or self._add_unknown(event, True, False)
            self._swap(old, new, one, two, event)
            self.out.rows.append((t, proc, one, op, old, new))
            return
        made = op in ("symlink", "mkdir")
        if op in ("mkdir", "rmdir") and not event["mode"]:
            event["mode"] = S_IFDIR
        file = self._subject(event, old, existed=not made)
        self.out.rows.append((t, proc, file, op, old, new or None))
        if op == "rename":
            self._unbind(old)
            self._bind(new, file)
            if _is_directory(event):
                self._move_below(old + b"/", new + b"/")
        elif op in ("unlink", "rmdir"):
            if self.bound.get(old) is None:
                self._bind(old, file)
            self._unbind(old)
        else:
            self._bind(new if op == "link" else old, file)

    def _subject(self, event: Any, path: bytes, *, existed: bool) -> int:
        """Return the file that an event refers to."""
        nameless = self._find_by_descriptor(event, path)
        if nameless:
            return nameless
        bound = self._real(self.bound.get(path, 0)) if existed else 0
        ino, dev = int(event["ino"]), int(event["dev"])
        if ino and existed:
            candidates = self.dev_ino.get((dev, ino), [])
            if bound in candidates:
                return bound
            if candidates and not bound:
                return self._choose_by_time(candidates, int(event["t_ns"]))
        if bound:
            return bound
        return self._add_unknown(event, existed, bool(ino))

    def _find_by_descriptor(self, event: Any, path: bytes) -> int:
        """Return the O_TMPFILE file whose descriptor this path names; 0 for any other path."""
        found = _DESCRIPTOR.fullmatch(path)
        opened = self._nameless.get((int(event["epoch"]), int(found[1])), []) if found else []
        return next((file for t_ns, file in reversed(opened) if t_ns <= event["t_ns"]), 0)

    @cached_property
    def _nameless(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """O_TMPFILE files by process epoch and descriptor: open time and number of each."""
        rows, found = self._sessions.rows, defaultdict(list)
        for at in np.flatnonzero(rows["flags"] & _NAMELESS).tolist():
            key = int(rows["epoch"][at]), int(rows["fd"][at])
            found[key].append((int(rows["open_ns"][at]), int(self._sessions.file[at])))
        return dict(found)

    def _choose_by_time(self, candidates: list[int], t_ns: int) -> int:
        """Return the file that had the inode number at this time, of all that ever had it."""
        begun = [file for file in candidates if self._files["open_ns"][file - 1] <= t_ns]
        return begun[-1] if begun else candidates[0]

    def _add_unknown(self, event: Any, existed: bool, described: bool) -> int:
        self.out.extra.append(
            NamedFile(
                int(event["dev"]) if described else 0,
                int(event["ino"]) if described else 0,
                int(event["mode"]) or S_IFREG,
                existed,
            )
        )
        return self.known + len(self.out.extra)

    def _move_below(self, old: bytes, new: bytes) -> None:
        for path in [p for p in self.bound if p.startswith(old)]:
            file = self.bound[path]
            self._unbind(path)
            self._bind(new + path[len(old) :], file)

    def _swap(self, old: bytes, new: bytes, one: int, two: int, event: Any) -> None:
        self._unbind(old)
        self._unbind(new)
        if _is_directory(event):
            self._move_below(old + b"/", b"\0exchange/")
            self._move_below(new + b"/", old + b"/")
            self._move_below(b"\0exchange/", new + b"/")
        self._bind(new, one)
        self._bind(old, two)


def _is_directory(event: Any) -> bool:
    return (int(event["mode"]) & S_IFMT) == S_IFDIR


_MAX_LINKS = 40  # as in the kernel


def through_links(
    ops: Sequence[str], inodes: Sequence[int], old: list[bytes], new: list[bytes]
) -> None:
    """Resolve links, in place, in the names that were not found; the calls are ordered by time.

    new: the other name of a rename or link, the target of a symlink. inodes: 0 where not found.
    """
    if "symlink" not in ops:
        return
    links: dict[bytes, bytes] = {}
    for i, op in enumerate(ops):
        if not inodes[i]:
            old[i] = resolve_path(old[i], links)
            new[i] = new[i] if op == "symlink" else resolve_path(new[i], links)
        if op == "symlink":
            links[old[i]] = new[i]
        elif op == "link" and old[i] in links:
            links[new[i]] = links[old[i]]
        elif op == "exchange":
            one, two = links.pop(old[i], None), links.pop(new[i], None)
            links.update({p: t for p, t in ((old[i], two), (new[i], one)) if t is not None})
        elif op == "unlink":
            links.pop(old[i], None)
        elif op == "rename" and old[i] in links:
            links[new[i]] = links.pop(old[i])


def resolve_path(path: bytes, links: dict[bytes, bytes]) -> bytes:
    """Resolve the known links in the directories of the path; a link as last component stays."""
    for _ in range(_MAX_LINKS if links else 0):
        at = path.find(b"/", 1)
        while at > 0 and path[:at] not in links:
            at = path.find(b"/", at + 1)
        if at < 0:
            break
        target, folder = links[path[:at]], path[:at].rpartition(b"/")[0]
        path = os.path.normpath((b"" if target[:1] == b"/" else folder + b"/") + target + path[at:])
    return path


def find_first_opens(spool: Spool, ep: Sessions, paths: pa.Array) -> pa.Table:
    """Return the first open of each (file, path)."""
    real = np.flatnonzero((ep.rows["state"] & lay.PIPE) == 0)
    path = paths.take(pa.array(real))
    # not group_by: it loads Arrow's query engine with all its file systems, 0.02 s
    codes = path.dictionary_encode(null_encoding="encode").indices.to_numpy()
    _, first = np.unique(ep.file[real] * (len(real) + 1) + codes, return_index=True)
    first.sort()
    row = real[first]
    created = (ep.rows["state"][row] & lay.CREATED) > 0
    return pa.table(
        {
            "t_ns": spool.wall(ep.rows["open_ns"][row]),
            "proc": ep.rows["epoch"][row].astype(np.int64),
            "file": ep.file[row],
            "op": pa.array(np.where(created, "create", "open")),
            "path": path.take(pa.array(first)),
        }
    ).sort_by("t_ns")


def follow_names(spool: Spool, ep: Sessions, firsts: pa.Table) -> Names:
    """Replay the changes of names in order of time."""
    events = spool.records["names"]
    events = filter_records(events, events["op"] < len(lay.NAME_OPS))
    events = take_records(events, np.argsort(events["t_ns"], kind="stable"))
    out = Names(firsts=firsts)
    if not len(events):
        return out
    old = spool.texts(events["off"], events["len"]).to_pylist()
    new = spool.texts(events["new_off"], events["new_len"]).to_pylist()
    through_links([lay.NAME_OPS[op] for op in events["op"]], events["ino"].tolist(), old, new)
    _mark_directories(events, firsts, old, new)
    NameReplay(out, ep).replay(spool, events, old, new, _select_relevant(firsts, events, old, new))
    return out


def _mark_directories(events: Any, firsts: pa.Table, old: list[bytes], new: list[bytes]) -> None:
    """Mark renamed files that were gone when the loader looked: directories, if files are below."""
    unknown = np.flatnonzero((events["op"] <= 1) & (events["mode"] == 0))
    if not len(unknown):
        return
    parents: set[bytes] = set()
    made = {old[i] for i in np.flatnonzero(events["op"] == lay.NAME_OPS.index("mkdir"))}
    for path in {p.rpartition(b"/")[0] for p in firsts.column("path").to_pylist()}:
        while path and path not in parents:
            parents.add(path)
            path = path.rpartition(b"/")[0]
    for i in unknown:
        if old[i] in parents or new[i] in parents or old[i] in made:
            events["mode"][i] = S_IFDIR


def _select_relevant(firsts: pa.Table, events: Any, old: list[bytes], new: list[bytes]) -> pa.Table:
    """Return first opens of files with a path in a change of names or below a renamed directory."""
    wanted = pa.array(sorted({*old, *new}), pa.binary())
    path = firsts.column("path").combine_chunks()
    keep = pc.is_in(path, value_set=wanted)
    directory = (events["mode"] & S_IFMT) == S_IFDIR
    for i in np.flatnonzero(directory & (events["op"] <= 1)):
        for text in {old[i], new[i]}:
            keep = pc.or_(keep, pc.starts_with(path, pattern=text + b"/"))
    files = firsts.filter(keep).column("file").unique()
    # every name of these files: a file is deleted with its last name
    return firsts.filter(pc.is_in(firsts.column("file"), value_set=files))


def kind_of_mode(mode: NDArray[Any], pipe: NDArray[np.bool_]) -> pa.Array:
    """Return the kind (FILE_KINDS) for each file mode."""
    form = mode & S_IFMT
    kind = np.where(form == S_IFDIR, "dir", np.where(form == S_IFREG, "file", "other"))
    return pa.array(np.where(pipe, "pipe", kind))
