"""Texts of an arena: paths as calls gave them become absolute, arguments are copied."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay

Records = NDArray[Any]
_HEAD = 8  # bytes of th_text
_MAX_PATH = 4096
_MAX_DEPTH = 16  # a directory whose name is relative to a directory ...


def gathered(data: NDArray[np.uint8], at: NDArray[np.int64], dtype: np.dtype[Any]) -> Records:
    """Copies of the records at these places; places outside the data are left out."""
    at = at[(at >= 0) & (at + dtype.itemsize <= len(data))]
    index = at[:, None] + np.arange(dtype.itemsize)
    return np.ascontiguousarray(data[index]).view(dtype).reshape(-1)


def texts_at(
    data: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int64]
) -> pa.BinaryArray:
    """The bytes at these places as one column; what lies outside the data is empty."""
    inside = (at >= 0) & (length >= 0) & (at + length <= len(data))
    length = np.where(inside, length, 0)
    ends = np.cumsum(length)
    index = np.repeat(np.where(inside, at, 0) - (ends - length), length) + np.arange(
        int(length.sum())
    )
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[index]))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(at), buffers)


class Texts:
    """Paths of an arena by their identifiers, and the heap that the converter reads."""

    def __init__(self, data: NDArray[np.uint8], *, here: bool) -> None:
        self.data, self.here = data, here
        self._pieces: list[bytes] = []
        self._used = 0
        self._real: dict[bytes, bytes] = {}
        self._opened: dict[tuple[bytes, int], bytes] = {}  # each process has texts of its own

    def heap(self) -> NDArray[np.uint8]:
        """All that was put so far."""
        return np.frombuffer(b"".join(self._pieces), np.uint8)

    def tables(
        self, episodes: Records, processes: Records, names: Records, execs: Records
    ) -> dict[str, Records]:
        """The records `paths`, `names` and `execs`."""
        text_of = self._by_file(episodes)
        opened = np.unique(np.concatenate([episodes["path"], processes["exe"], processes["cwd"]]))
        symlink = lay.NAME_OPS.index("symlink")
        changed = np.concatenate([names["off"], names["new_off"][names["op"] != symlink]])
        every = np.unique(np.concatenate([opened, changed])).astype(np.int64)
        every = np.unique([text_of.get(i, i) for i in every.tolist()]).astype(np.int64)
        absolute = self._absolute(every[every > 0])
        inodes = dict(zip(episodes["path"].tolist(), episodes["ino"].tolist(), strict=True))
        paths = np.zeros(len(opened), lay.PATH_DT)
        paths["id"] = opened
        final = [
            self._followed(absolute.get(text_of.get(i, i), b""), inodes.get(i, 0))
            for i in opened.tolist()
        ]
        paths["off"], paths["len"] = self._put(final)
        return {
            "paths": paths[paths["len"] > 0],
            "names": self._names(names, absolute, symlink),
            "execs": self._execs(execs),
        }

    def _by_file(self, episodes: Records) -> dict[int, int]:
        """Gives each other file that was opened by one text an identifier of its own, as what a
        link led to may have changed; identifier -> text."""
        pairs = np.unique(episodes[["path", "ino"]])
        first = np.ones(len(pairs), bool)
        first[1:] = pairs["path"][1:] != pairs["path"][:-1]
        others = pairs[~first & (pairs["path"] > 0)]
        free = len(self.data) // 8 + 1  # no text lies there
        others = others[: max((1 << 32) - free, 0)]
        made = np.arange(free, free + len(others))
        if len(others):
            wanted = episodes[["path", "ino"]]
            at = np.minimum(np.searchsorted(others, wanted), len(others) - 1)
            same = others[at] == wanted
            text_of = dict(zip(made.tolist(), others["path"].tolist(), strict=True))
            episodes["path"][same] = made[at[same]]
            return text_of
        return {}

    def _names(self, names: Records, absolute: dict[int, bytes], symlink: int) -> Records:
        names = names.copy()
        old = [self._parents(absolute.get(i, b"")) for i in names["off"].tolist()]
        targets = self._raw(names["new_off"].astype(np.int64))
        new = [
            target if op == symlink else self._parents(absolute.get(i, b""))
            for op, i, target in zip(
                names["op"].tolist(), names["new_off"].tolist(), targets, strict=True
            )
        ]
        names["off"], names["len"] = self._put(old)
        names["new_off"], names["new_len"] = self._put(new)
        major, minor = names["dev"] >> np.uint64(32), names["dev"] & np.uint64(0xFFFFFFFF)
        known = {(int(a), int(b)) for a, b in zip(major, minor, strict=True)}
        made = {pair: os.makedev(*pair) for pair in known if max(pair) < 1 << 31}
        names["dev"] = [made.get((int(a), int(b)), 0) for a, b in zip(major, minor, strict=True)]
        return names

    def _execs(self, execs: Records) -> Records:
        execs = execs[execs["epoch"] > 0].copy()
        for text in ("argv", "env"):
            column = texts_at(
                self.data, execs[f"{text}_off"].astype(np.int64),
                np.minimum(execs[f"{text}_len"], 1 << 16).astype(np.int64),
            )  # fmt: skip  # a table
            execs[f"{text}_off"], execs[f"{text}_len"] = self._put(column.to_pylist())
        return execs

    def _put(self, texts: list[bytes]) -> tuple[list[int], list[int]]:
        offsets = []
        for text in texts:
            offsets.append(self._used)
            self._pieces.append(text)
            self._used += len(text)
        return offsets, [len(text) for text in texts]

    def _heads(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Length and directory of each text."""
        at = np.clip(ids * 8, 0, max(len(self.data) - _HEAD, 0))
        words = np.ascontiguousarray(self.data[at[:, None] + np.arange(_HEAD)]).view("<u4")
        return np.minimum(words[:, 0], _MAX_PATH).astype(np.int64), words[:, 1].astype(np.int64)

    def _raw(self, ids: NDArray[np.int64]) -> list[bytes]:
        """The texts as they were given; identifier 0 is empty."""
        if not len(ids):
            return []
        length, _ = self._heads(ids)
        found: list[bytes] = texts_at(
            self.data, ids * 8 + _HEAD, np.where(ids > 0, length, 0)
        ).to_pylist()
        return found

    def _absolute(self, ids: NDArray[np.int64]) -> dict[int, bytes]:
        """The whole path of each text, by the text alone."""
        known: dict[int, tuple[bytes, int]] = {}
        wanted = ids
        for _ in range(_MAX_DEPTH):
            if not len(wanted):
                break
            _, dirs = self._heads(wanted)
            known |= dict(
                zip(
                    wanted.tolist(), zip(self._raw(wanted), dirs.tolist(), strict=True), strict=True
                )
            )
            missing = {d for d in np.unique(dirs).tolist() if d and d not in known}
            wanted = np.array(sorted(missing), np.int64)
        done: dict[int, bytes] = {0: b""}
        return {i: self._join(i, known, done) for i in ids.tolist()}

    def _join(self, i: int, known: dict[int, tuple[bytes, int]], done: dict[int, bytes]) -> bytes:
        chain = list[int]()
        while i not in done and i in known and len(chain) < _MAX_DEPTH:
            chain.append(i)
            i = known[i][1]
        base = done.get(i, b"")
        for each in reversed(chain):
            text = known[each][0]  # an absolute one is below the root that chroot set
            base = base + text if text[:1] == b"/" else base + b"/" + text
            done[each] = base
        return base

    def _parents(self, path: bytes) -> bytes:
        """Without symbolic links among its directories, as far as they are still there."""
        if not path.startswith(b"/"):
            return path
        path = path.rstrip(b"/") or b"/"
        folder, _, name = path.rpartition(b"/")
        if name in (b"..", b"."):
            return self._directory(path)
        folder = self._directory(folder or b"/")
        return (b"" if folder == b"/" else folder) + b"/" + name

    def _directory(self, path: bytes) -> bytes:
        found = self._real.get(path)
        if found is None:
            found = os.path.normpath(path).replace(b"//", b"/")
            if self.here:
                with contextlib.suppress(OSError, ValueError):
                    real = os.path.realpath(path)
                    found = real if Path(os.fsdecode(real)).is_dir() else found
            self._real[path] = found
        return found

    def _followed(self, path: bytes, inode: int) -> bytes:
        """What an open of the path opened: a link that comes last is followed, where it still
        leads to that file."""
        found = self._opened.get((path, inode))
        if found is None:
            found = self._opened[path, inode] = self._follow(path, inode)
        return found

    def _follow(self, path: bytes, inode: int) -> bytes:
        path = self._parents(path)
        if not self.here or not path:
            return path
        with contextlib.suppress(OSError, ValueError):
            if stat.S_ISLNK(os.lstat(path).st_mode):
                real = os.path.realpath(path)
                if os.lstat(real).st_ino == inode:
                    return real
        return path
