"""The preload library's arena as the records of a spool, for the one converter.

The arena is what recorded programs wrote to memory that they share, so nothing in it is believed:
chunks are found by their marks, every offset is checked, and what lies outside is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracehint.errors import BundleError
from tracehint.schemas.spool import arena_layout as al
from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.arena_clock import Clock, clock_of
from tracehint.schemas.spool.arena_texts import Texts, gathered
from tracehint.schemas.spool.arena_totals import totals_of_killed
from tracehint.schemas.spool.arena_tree import fill_tree
from tracehint.schemas.spool.rows import is_in, kept, numbered, together

Records = NDArray[Any]
_DTYPES = {
    lay.EPISODE: lay.EPISODE_DT, lay.EXTENT: lay.EXTENT_DT, lay.NAME: lay.NAME_DT,
    al.EVENT: al.EVENT_DT, al.BRIEF: al.BRIEF_DT,
}  # fmt: skip  # a table
_EPISODE_TIMES = ("open_ns", "close_ns", "first_ns")


@dataclass
class Arena:
    """The file and its chunks."""

    data: NDArray[np.uint8]
    head: Any  # HEAD_DT, one record
    chunks: Records  # CHUNK_DT, in order of their place


def open_arena(path: Path) -> Arena:
    """Read the file and find its chunks. Raises BundleError.

    It is not mapped: looking at a hole of a mapped file can need a block of a full disk, and then
    is a signal.
    """
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size < al.PAGE:
            raise OSError("no regular file, or too short")
        head = np.fromfile(path, al.HEAD_DT, 1)[0]
        if head["magic"] != al.MAGIC or head["version"] != al.VERSION:
            raise BundleError(
                f"{path}: an arena of another version",
                "Convert it with the tracehint that recorded.",
            )
        used = min(int(head["used"]), int(head["allocated"]), path.stat().st_size)
        data = np.fromfile(path, np.uint8, used // al.PAGE * al.PAGE)
    except (OSError, ValueError, MemoryError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the run again.") from None
    data = data[: len(data) // al.PAGE * al.PAGE]
    return Arena(data, head, _chunks(data))


def _chunks(data: NDArray[np.uint8]) -> Records:
    """Pages that say of themselves that a chunk begins there."""
    pages = data.reshape(-1, al.PAGE)[:, : al.CHUNK_DT.itemsize]
    heads = np.ascontiguousarray(pages).view(al.CHUNK_DT).reshape(-1)
    place = np.arange(len(heads), dtype=np.uint64) * np.uint64(al.PAGE)
    fits = (heads["magic"] == al.CHUNK_MAGIC) & (heads["self"] == place)
    fits &= place + heads["size"] <= len(data)
    chunks: Records = heads[fits]
    return chunks


def _records(arena: Arena, kind: int) -> Records:
    """All whole records of a kind, chunk after chunk."""
    dtype = _DTYPES[kind]
    chunks = arena.chunks[arena.chunks["kind"] == kind]
    room = np.minimum(chunks["used"], chunks["size"]).astype(np.int64) - al.CHUNK_DT.itemsize
    counts = np.maximum(room, 0) // dtype.itemsize
    starts = chunks["self"].astype(np.int64) + al.CHUNK_DT.itemsize
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    at = np.repeat(starts, counts) + within * dtype.itemsize
    return gathered(arena.data, at, dtype)


def _pages(arena: Arena) -> Records:
    chunks = arena.chunks[
        (arena.chunks["kind"] == lay.ALIVE) & (arena.chunks["size"] >= al.PAGE_DT.itemsize)
    ]
    return gathered(arena.data, chunks["self"].astype(np.int64), al.PAGE_DT)


def _without_failed_execs(pages: Records) -> Records:
    """What was written for a program that cannot be entered, and then was not executed, goes."""
    proc = pages["proc"]
    executed = proc["hashed"][proc["kind"] == lay.EXEC]
    return kept(pages, (pages["unentered"] == 0) | is_in(proc["epoch"], executed))


def _with_closed(episodes: Records, briefs: Records) -> Records:
    """Whole episodes, and those of which the short form is left."""
    briefs = kept(briefs, briefs["kind"] == al.BRIEF)
    episodes = kept(episodes, episodes["kind"] == lay.EPISODE)
    episodes = kept(episodes, ~is_in(episodes["open_id"], briefs["open_id"]))
    closed = np.zeros(len(briefs), lay.EPISODE_DT)
    for name in al.BRIEF_DT.names or ():
        if name != "last_ns":
            closed[name] = briefs[name]
    closed["kind"] = lay.EPISODE
    closed["epoch"] = briefs["open_id"] >> np.uint64(32)
    closed["inner"]["last_ns"] = briefs["last_ns"]
    return together(episodes, closed)


def _runs_once(episodes: Records, extents: Records) -> None:
    """Of a run that was on its way from one place to the next when its process was killed, the
    copy in the episode goes."""
    inside = (episodes["outer"]["ops"] > 0) | (episodes["inner"]["ops"] > 0)
    at = np.flatnonzero(inside)
    mine = kept(episodes, inside)
    ids = (mine["open_id"], mine["open_id"], extents["open_id"])
    keys = _run_keys(ids, (mine["outer"], mine["inner"], extents["run"]))
    outer, inner, sent = np.split(keys, [len(mine), 2 * len(mine)])
    twice = is_in(inner, sent) | ((inner == outer) & (mine["outer"]["ops"] > 0))
    episodes["inner"]["ops"][at[twice]] = 0
    episodes["outer"]["ops"][at[is_in(outer, sent)]] = 0


def _run_keys(open_ids: tuple[Records, ...], runs: tuple[Records, ...]) -> NDArray[np.int64]:
    """A number that tells one run of a file from another, of all these runs in their order."""
    columns = [np.concatenate([run[name] for run in runs]) for name in ("first_ns", "start", "op")]
    return numbered(np.concatenate(open_ids), *columns)


def _times(records: Records, names: tuple[str, ...], clock: Clock) -> None:
    for name in names:
        records[name] = clock.boot(records[name])


def arena_records(
    folder: Path, start: dict[str, Any], end: dict[str, Any], *, here: bool
) -> tuple[dict[str, Records], NDArray[np.uint8], list[tuple[int, str]]]:
    """The spool's records, its heap, and (epoch, what could not be entered).

    start, end: what the recorder wrote at its beginning and end. here: this is the host that
    recorded, so symbolic links may be followed. Raises BundleError.
    """
    arena = open_arena(folder / al.FILE)
    every = _pages(arena)
    pages = _without_failed_execs(every)
    clock = clock_of(pages["began"], start, end)
    texts = Texts(arena.data, here=here)
    episodes, extents = _records(arena, lay.EPISODE), _records(arena, lay.EXTENT)
    episodes = together(every["first"].reshape(-1), episodes)
    episodes = _with_closed(episodes, _records(arena, al.BRIEF))
    extents = kept(extents, extents["kind"] == lay.EXTENT)
    _runs_once(episodes, extents)
    totals_of_killed(episodes, extents)
    names, events = _records(arena, lay.NAME), _records(arena, al.EVENT)
    names = kept(names, names["t_ns"] > 0)
    events = kept(events, (events["kind"] == al.FORK) | (events["kind"] == al.WAIT))
    _times(episodes, _EPISODE_TIMES, clock)
    for run in (episodes["outer"], episodes["inner"], extents["run"]):
        _times(run, ("first_ns", "last_ns"), clock)
    _times(names, ("t_ns",), clock)
    _times(events, ("t",), clock)
    processes = pages["proc"].copy()
    processes["hashed"] = 0
    _times(processes, ("start_ns", "end_ns"), clock)
    processes = fill_tree(processes, events, end)
    _settle(episodes)
    records = {"episodes": episodes, "extents": extents, "processes": processes}
    records["losses"] = _losses(arena)
    records |= texts.tables(episodes, processes, names, pages["exec"])
    over = bool(end) and not end.get("outlived")
    return records, texts.heap(), _unentered(kept(pages, pages["unentered"] > 0), over=over)


def _unentered(pages: Records, *, over: bool) -> list[tuple[int, str]]:
    """Epoch, and what kind of program could not be entered. over: no process is left."""
    last = len(al.CLASSES) - 1
    rows = []
    for page in pages:
        what = al.CLASSES[min(int(page["unentered"]) & ~al.FOLLOWED, last)]
        if page["unentered"] & al.FOLLOWED:
            what += ", followed"
            if over and not page["proc"]["flags"] & al.FOLLOWED_ALL:
                what += " until those who followed it were killed"
        rows.append((int(page["proc"]["epoch"]), what))
    return rows


def _settle(episodes: Records) -> None:
    """Files of processes that were killed: at least as large as what was written to them."""
    for run in (episodes["outer"], episodes["inner"]):
        wrote = (run["op"] == lay.OPS.index("write")) & (run["ops"] > 0)
        last = np.where(run["count"] > 1, run["stride"].astype(np.int64), 0) * (
            np.maximum(run["count"], 1).astype(np.int64) - 1
        )
        ends = run["start"].astype(np.int64) + last + run["length"].astype(np.int64)
        unknown = wrote & (episodes["close_ns"] == 0)
        grown = np.maximum(episodes["size_close"].astype(np.int64), ends)
        episodes["size_close"] = np.where(unknown, grown, episodes["size_close"])


def _losses(arena: Arena) -> Records:
    lost = np.zeros(lay.LOST + 1, lay.LOSS_DT)
    lost["kind"][: lay.LOST] = np.arange(lay.LOST)
    lost["count"][: lay.LOST] = arena.head["lost"][: lay.LOST]
    lost["kind"][lay.LOST], lost["count"][lay.LOST] = 65, arena.head["unplaced"]
    return lost[lost["count"] > 0]
