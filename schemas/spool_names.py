"""Names of files over time: from opens (first sight of a path) and from calls that change names.

Which file a rename or unlink meant is known from the paths seen before it, or
from what the loader found under the new name, or from what is opened under the
new name later. The loop below runs over calls that change names and over first
sights of the paths in them, not over opens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehint.schemas import spool_layout as lay
from tracehint.schemas.spool_opens import Episodes, dev_of
from tracehint.schemas.spool_read import Spool

_S_IFMT, _S_IFDIR, _S_IFREG = 0o170000, 0o040000, 0o100000


@dataclass
class Extra:
    """A file that the run never opened, known by name only."""

    dev: int
    ino: int
    mode: int
    existed: bool


@dataclass
class Names:
    """Rows for `names`, truncations by path, and what became of the files."""

    rows: list[tuple[int, int, int, str, bytes, bytes | None]] = field(default_factory=list)
    truncated: list[tuple[int, int, int, int]] = field(default_factory=list)  # t, proc, file, size
    extra: list[Extra] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    firsts: pa.Table | None = None  # first sight of each (file, path): t_ns, proc, file, op, path


def first_sights(spool: Spool, ep: Episodes, paths: pa.Array) -> pa.Table:
    """The first open of each (file, path)."""
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
            "proc": ep.rows["epoch"][row].astype(np.int64), "file": ep.file[row],
            "op": pa.array(np.where(created, "create", "open")), "path": path.take(pa.array(first)),
        }
    ).sort_by("t_ns")  # fmt: skip


def follow_names(spool: Spool, ep: Episodes, firsts: pa.Table) -> Names:
    """Play the changes of names in order."""
    events = spool.records["names"]
    events = events[(events["op"] < len(lay.NAME_OPS))]
    events = events[np.argsort(events["t_ns"], kind="stable")].copy()
    out = Names(firsts=firsts)
    if not len(events):
        return out
    old = spool.texts(events["off"], events["len"]).to_pylist()
    new = spool.texts(events["new_off"], events["new_len"]).to_pylist()
    _mark_directories(events, firsts, old, new)
    player = _Player(out, ep, len(ep.files))
    player.replay(spool, events, old, new, _relevant(firsts, events, old, new))
    return out


def _mark_directories(events: Any, firsts: pa.Table, old: list[bytes], new: list[bytes]) -> None:
    """Renames whose subject was gone when the loader looked: a directory if files are below."""
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
            events["mode"][i] = _S_IFDIR


def _relevant(firsts: pa.Table, events: Any, old: list[bytes], new: list[bytes]) -> pa.Table:
    """First sights of paths that a change of names mentions, or below a renamed directory."""
    wanted = pa.array(sorted({*old, *new}), pa.binary())
    path = firsts.column("path").combine_chunks()
    keep = pc.is_in(path, value_set=wanted)
    directory = (events["mode"] & _S_IFMT) == _S_IFDIR
    for i in np.flatnonzero(directory & (events["op"] <= 1)):
        for text in {old[i], new[i]}:
            keep = pc.or_(keep, pc.starts_with(path, pattern=text + b"/"))
    files = firsts.filter(keep).column("file").unique()
    # every name of these files: a file is deleted when the last one is gone
    return firsts.filter(pc.is_in(firsts.column("file"), value_set=files))


class _Player:
    def __init__(self, out: Names, ep: Episodes, known: int) -> None:
        self.out, self.known = out, known
        self.bound: dict[bytes, int] = {}
        self.names_left: dict[int, int] = {}
        self.alias: dict[int, int] = {}
        self.covered: dict[tuple[bytes, int], int] = {}  # another file system lies over the name
        real = (ep.files["state"] & lay.PIPE) == 0
        self.dev_ino: dict[tuple[int, int], list[int]] = {}
        devs = dev_of(ep.files["dev"])
        self._devices = devs
        self._index = (devs, ep.files["ino"], real, ep.files["open_ns"])

    def replay(
        self, spool: Spool, events: Any, old: list[bytes], new: list[bytes], firsts: pa.Table
    ) -> None:
        """Events and first sights, merged by time."""
        self._fill_dev_ino(events)
        times = spool.wall(events["t_ns"]).tolist()
        sights = firsts.to_pydict()
        at = 0
        for i, t in enumerate(times):
            while at < len(sights["t_ns"]) and sights["t_ns"][at] <= t:
                self._sight(sights["path"][at], sights["file"][at])
                at += 1
            self._event(t, events[i], old[i], new[i])
        for later in range(at, len(sights["t_ns"])):
            self._sight(sights["path"][later], sights["file"][later])
        rows = self.out.rows
        self.out.rows = [(t, p, self._real(f), op, a, b) for t, p, f, op, a, b in rows]
        self.out.truncated = [(t, p, self._real(f), n) for t, p, f, n in self.out.truncated]
        self.out.deleted = {self._real(f) for f, left in self.names_left.items() if left <= 0}

    def _fill_dev_ino(self, events: Any) -> None:
        """Known files by (device, inode), for the inodes that the events name only."""
        devs, inos, real, _ = self._index
        for i in np.flatnonzero(np.isin(inos, events["ino"]) & real).tolist():
            self.dev_ino.setdefault((int(devs[i]), int(inos[i])), []).append(i + 1)

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

    def _sight(self, path: bytes, file: int) -> None:
        before = self._real(self.bound.get(path, 0))
        if before > self.known:  # only a name so far: this is who it was
            self.alias[before] = file
            self.names_left[file] = self.names_left.get(file, 0) + self.names_left.pop(before, 0)
        elif before != file:
            if before and self._devices[before - 1] != self._devices[file - 1]:
                self.covered[path, before] = self.bound.pop(path)  # by a mount: not gone
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
            file = self._subject(event, old, old, existed=True)
            self.out.truncated.append((t, proc, file, int(event["size"])))
            return
        if op == "exchange":
            one = self._subject(event, old, new, existed=True)
            two = self._real(self.bound.get(new, 0)) or self._unknown(event, True, False)
            self._swap(old, new, one, two, event)
            self.out.rows.append((t, proc, one, op, old, new))
            return
        made = op in ("symlink", "mkdir")
        if op in ("mkdir", "rmdir") and not event["mode"]:
            event["mode"] = _S_IFDIR
        target = new if op in ("rename", "link") else old
        file = self._subject(event, old, target, existed=not made)
        self.out.rows.append((t, proc, file, op, old, new or None))
        if op == "rename":
            self._move(event, old, new, file)
        elif op in ("unlink", "rmdir"):
            if self.bound.get(old) is None:
                self._bind(old, file)
            self._unbind(old)
        else:
            self._bind(target, file)

    def _subject(self, event: Any, path: bytes, target: bytes, *, existed: bool) -> int:
        """The file that an event is about."""
        fresh = not existed
        bound = 0 if fresh else self._real(self.bound.get(path, 0))
        ino, dev = int(event["ino"]), int(event["dev"])
        if ino and not fresh:
            candidates = self.dev_ino.get((dev, ino), [])
            if bound in candidates:
                return bound
            if candidates and not bound:
                return candidates[-1]
        if bound:
            return bound
        del target
        return self._unknown(event, existed, bool(ino))

    def _unknown(self, event: Any, existed: bool, described: bool) -> int:
        self.out.extra.append(
            Extra(
                int(event["dev"]) if described else 0, int(event["ino"]) if described else 0,
                int(event["mode"]) or _S_IFREG, existed,
            )
        )  # fmt: skip
        return self.known + len(self.out.extra)

    def _move(self, event: Any, old: bytes, new: bytes, file: int) -> None:
        if self.bound.get(old) is None and file <= self.known:
            pass  # reached through a name that was never opened
        self._unbind(old)
        self._bind(new, file)
        if (int(event["mode"]) & _S_IFMT) == _S_IFDIR:
            self._move_below(old + b"/", new + b"/")

    def _move_below(self, old: bytes, new: bytes) -> None:
        for path in [p for p in self.bound if p.startswith(old)]:
            file = self.bound[path]
            self._unbind(path)
            self._bind(new + path[len(old) :], file)

    def _swap(self, old: bytes, new: bytes, one: int, two: int, event: Any) -> None:
        self._unbind(old)
        self._unbind(new)
        if (int(event["mode"]) & _S_IFMT) == _S_IFDIR:
            self._move_below(old + b"/", b"\0exchange/")
            self._move_below(new + b"/", old + b"/")
            self._move_below(b"\0exchange/", new + b"/")
        self._bind(new, one)
        self._bind(old, two)


def kind_of_mode(mode: NDArray[Any], pipe: NDArray[np.bool_]) -> pa.Array:
    """FILE_KINDS by file mode."""
    form = mode & _S_IFMT
    kind = np.where(form == _S_IFDIR, "dir", np.where(form == _S_IFREG, "file", "other"))
    return pa.array(np.where(pipe, "pipe", kind))
