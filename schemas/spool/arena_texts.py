"""Texts of an arena: paths as passed to calls become absolute, arguments are copied.

Each process has its own texts: the same path occurs many times and is processed once.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.arena_links import RealPaths
from tracehint.schemas.spool.layout import distinct, filter_records, firsts, number_rows
from tracehint.schemas.spool.mount_names import MARK, MAX_TABLE

Records = NDArray[Any]
Ints = NDArray[np.int64]

_MAX_PATH = 4096
_MAX_DEPTH = 16  # levels of names that are relative to another directory
_HEAD = 8  # bytes of th_text


def gather_records(data: NDArray[np.uint8], at: NDArray[np.int64], dtype: np.dtype[Any]) -> Records:
    """Copy the records at these positions; positions outside the data are left out."""
    at = at[(at >= 0) & (at + dtype.itemsize <= len(data))]
    if not len(at):
        return np.zeros(0, dtype)
    windows = np.lib.stride_tricks.sliding_window_view(data, dtype.itemsize)
    return np.ascontiguousarray(windows[at]).view(dtype).reshape(-1)


def texts_at(
    data: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int64]
) -> pa.BinaryArray:
    """Return the bytes at these positions as one column; texts outside the data are empty."""
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
    """Paths of an arena by identifier, and the heap that the converter reads."""

    def __init__(self, data: NDArray[np.uint8], links: RealPaths) -> None:
        self.data, self.links = data, links
        self._pieces: list[bytes] = []
        self._used = 0

    def heap(self) -> NDArray[np.uint8]:
        """Return all texts added so far."""
        return np.frombuffer(b"".join(self._pieces), np.uint8)

    def tables(
        self, episodes: Records, processes: Records, names: Records, execs: Records
    ) -> dict[str, Records]:
        """Return the records `paths`, `names` and `execs`. An episode that opened another file by
        the same text gets a path identifier of its own, in place."""
        opened, text, inode = self._by_file(episodes)
        others = distinct(np.concatenate([processes["exe"], processes["cwd"]]).astype(np.int64))
        others = others[~_in_sorted(others, opened)]
        opened, text = np.append(opened, others), np.append(text, others)
        inode = np.append(inode, np.zeros(len(others), np.uint64))
        symlink = lay.NAME_OPS.index("symlink")
        changed = np.concatenate([names["off"], names["new_off"][names["op"] != symlink]])
        every = distinct(np.concatenate([text, changed.astype(np.int64)]))
        paths = Absolute(self, every[every > 0])
        return {
            "paths": self._paths(opened, paths.of(text), inode, paths.texts),
            "names": self._names(names, paths, symlink),
            "execs": self._execs(execs),
        }

    def _by_file(self, episodes: Records) -> tuple[Ints, Ints, NDArray[np.uint64]]:
        """Return (path identifiers of episodes, the text and the inode of each). Each further file
        opened by one text gets its own identifier, as the target of a link may have changed."""
        path, ino = episodes["path"].astype(np.int64), episodes["ino"].copy()
        order = np.lexsort((ino, path))
        new = firsts(path[order])
        first = order[new | firsts(ino[order])]
        number = number_rows(path, ino)
        one = np.zeros(len(first), bool)  # the first file of each text keeps its identifier
        one[number[order[new]]] = True
        one |= path[first] == 0
        free = len(self.data) // 8 + 1  # beyond all texts
        made = free + np.cumsum(~one) - 1
        own = np.where(one | (made >= 1 << 32), path[first], made)
        episodes["path"] = own[number]
        where = np.argsort(own, kind="stable")
        where = where[firsts(own[where])]
        return own[where], path[first][where], ino[first][where]

    def _paths(
        self, ids: Ints, whole: Ints, inode: NDArray[np.uint64], texts: list[bytes]
    ) -> Records:
        """Return records of opened files; whole: indices of their paths in `texts`."""
        number = number_rows(whole, inode)
        order = np.argsort(number, kind="stable")
        first = order[firsts(number[order])]
        each = zip(whole[first].tolist(), inode[first].tolist(), strict=True)
        off, length = self._put([self.links.resolve_open(texts[i], file) for i, file in each])
        paths = np.zeros(len(ids), lay.PATH_DT)
        paths["id"], paths["off"], paths["len"] = ids, off[number], length[number]
        return filter_records(paths, paths["len"] > 0)

    def _names(self, names: Records, paths: Absolute, symlink: int) -> Records:
        names = names.copy()
        meant = [self.links.resolve_directories(text) for text in paths.texts]
        old = [meant[i] for i in paths.of(names["off"].astype(np.int64)).tolist()]
        targets, _ = self.raw(names["new_off"].astype(np.int64))
        both = paths.of(np.where(names["op"] == symlink, 0, names["new_off"]).astype(np.int64))
        ops = names["op"].tolist()
        each = zip(ops, both.tolist(), targets.to_pylist(), strict=True)
        new = [target if op == symlink else meant[i] for op, i, target in each]
        names["off"], names["len"] = self._put(old)
        names["new_off"], names["new_len"] = self._put(new)
        names["dev"] = _devices(names["dev"])
        return names

    def _execs(self, execs: Records) -> Records:
        execs = filter_records(execs, execs["epoch"] > 0)
        for text in ("argv", "env"):
            column = texts_at(
                self.data,
                execs[f"{text}_off"].astype(np.int64),
                np.minimum(execs[f"{text}_len"], 1 << 16).astype(np.int64),
            )
            execs[f"{text}_off"], execs[f"{text}_len"] = self._put(column.to_pylist())
        return execs

    def _put(self, texts: list[bytes]) -> tuple[Ints, Ints]:
        """Add the texts to the heap; return the offset and length of each."""
        length = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(length) + self._used
        self._pieces += texts
        self._used += int(length.sum())
        return ends - length, length

    def base(self, text: int) -> bytes:
        """Return the prefix of names below a mount table; empty: the text is no mount table."""
        at = text * 8 + _HEAD
        length = int.from_bytes(self.data[at - _HEAD : at - _HEAD + 4].tobytes(), "little")
        table = self.data[at : at + min(length, MAX_TABLE)].tobytes()
        return self.links.outside.base(table) if table.startswith(MARK) else b""

    def raw(self, ids: Ints) -> tuple[pa.BinaryArray, Ints]:
        """Return the texts as passed to calls (identifier 0 is empty), and each one's directory."""
        at = np.clip(ids * 8, 0, max(len(self.data) - _HEAD, 0))
        words = np.ascontiguousarray(self.data[at[:, None] + np.arange(_HEAD)]).view("<u4")
        length = np.minimum(words[:, 0], _MAX_PATH).astype(np.int64)
        texts = texts_at(self.data, ids * 8 + _HEAD, np.where(ids > 0, length, 0))
        return texts, words[:, 1].astype(np.int64)


class Absolute:
    """The absolute path of each text, derived lexically. `texts`: the distinct paths, the first is
    empty; `of`: identifiers -> their indices."""

    def __init__(self, texts: Texts, ids: Ints) -> None:
        self.texts = [b""]
        self._place: dict[bytes, int] = {b"": 0}
        self._ids = np.concatenate([np.zeros(1, np.int64), self._with_directories(texts, ids)])
        raw, above = texts.raw(self._ids)
        coded = raw.dictionary_encode()
        self._given, code = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        cut = [i for i, text in enumerate(self._given) if text.startswith(MARK)]
        if cut:
            code = code.copy()
            for i in np.flatnonzero(np.isin(code, cut)).tolist():
                code[i] = len(self._given)
                self._given.append(texts.base(int(self._ids[i])))
        known = _in_sorted(above, self._ids)
        above = np.where(known, np.searchsorted(self._ids, np.where(known, above, 0)), 0)
        self._whole = np.zeros(len(self._ids), np.int64)
        todo = np.arange(1, len(self._ids))
        done = np.zeros(len(self._ids), bool)
        done[0] = True
        for _ in range(_MAX_DEPTH + 1):
            ready = done[above[todo]]
            now = todo[ready] if ready.any() else todo  # none has a known directory
            self._whole[now] = self._join_paths(self._whole[above[now]], code[now])
            done[now] = True
            todo = todo[~done[todo]]

    def of(self, ids: Ints) -> Ints:
        """Return the indices of the paths of these texts; 0 if a text is unknown."""
        known = _in_sorted(ids, self._ids)
        at = np.searchsorted(self._ids, np.where(known, ids, 0))
        return np.where(known, self._whole[at], 0)

    def _with_directories(self, texts: Texts, ids: Ints) -> Ints:
        """Return the identifiers and those of the directories they are relative to, sorted."""
        wanted = ids
        for _ in range(_MAX_DEPTH):
            if not len(wanted):
                break
            _, above = texts.raw(wanted)
            wanted = distinct(above[(above > 0) & ~_in_sorted(above, ids)])
            ids = distinct(np.concatenate([ids, wanted]))
        return ids

    def _join_paths(self, bases: Ints, codes: Ints) -> Ints:
        """Join each directory's path and text; return the indices of the results."""
        number = number_rows(bases, codes)
        order = np.argsort(number, kind="stable")
        first = order[firsts(number[order])]
        places = [
            self._add(self.texts[base], self._given[code])
            for base, code in zip(bases[first].tolist(), codes[first].tolist(), strict=True)
        ]
        return np.array(places, np.int64)[number] if places else np.zeros(0, np.int64)

    def _add(self, base: bytes, text: bytes) -> int:
        # an absolute name is below the root set by chroot
        path = base + text if text[:1] == b"/" else base + b"/" + text
        place = self._place.setdefault(path, len(self.texts))
        if place == len(self.texts):
            self.texts.append(path)
        return place


def _in_sorted(values: Ints, ordered: Ints) -> NDArray[np.bool_]:
    """Return which of the values are in the sorted array `ordered`."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[at] == values
    return found


def _devices(numbers: Records) -> Records:
    """Convert device numbers of statx (32 bits each of major and minor) to those of stat."""
    major, minor = numbers >> np.uint64(32), numbers & np.uint64(0xFFFFFFFF)
    known = set(zip(major.tolist(), minor.tolist(), strict=True))
    made = {pair: os.makedev(*pair) for pair in known if max(pair) < 1 << 31}
    pairs = zip(major.tolist(), minor.tolist(), strict=True)
    return np.array([made.get(pair, 0) for pair in pairs], np.uint64)
