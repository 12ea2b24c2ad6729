"""Convert the preload library's arena to the records of a spool, for the common converter.

The arena is shared memory written by the recorded programs, so its content is untrusted: chunks
are found by their magic numbers, offsets are checked, data out of bounds is left out.
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
from tracehint.schemas.spool.arena_layout import Clock, clock_of
from tracehint.schemas.spool.arena_links import RealPaths
from tracehint.schemas.spool.arena_texts import Texts, gather_records
from tracehint.schemas.spool.layout import (
    concat_records,
    distinct,
    filter_records,
    is_in,
    number_rows,
    take_records,
)

Records = NDArray[Any]


UNENTERED, OWN_NAMES = "unentered_programs", "container_names"
_REMEDY = "no /proc there, or chroot: use a container with /proc, data bound at its own path"
ProcessLoss = tuple[int, str, str]  # epoch, kind, what
_Process = tuple[int, int]  # PID namespace, pid in it


def fill_tree(
    rows: Records, spaces: Records, events: Records, end: dict[str, Any]
) -> tuple[Records, int]:
    """Return the processes with parents, previous epochs and ends, plus children that made no call,
    and the number of processes whose PID namespace was guessed among several.

    rows: PROCESS_DT, times in nanoseconds. spaces: the PID namespace of each, 0: not known.
    end: `root`, `wait_status` and `ended_boot_ns` of the command.
    """
    order = np.argsort(rows["start_ns"], kind="stable")
    rows = take_records(rows, order)
    moments = [(int(r["start_ns"]), 1, i) for i, r in enumerate(rows)]
    moments += [(int(e["t"]), 0 if e["kind"] == al.FORK else 2, i) for i, e in enumerate(events)]
    state = _ProcessTree(rows, spaces[order].tolist(), events)
    for _, what, i in sorted(moments):
        (state.note_fork, state.note_begin, state.note_wait)[what](i)
    state.note_end(end)
    return state.all(), state.guesses


class _ProcessTree:
    def __init__(self, rows: Records, spaces: list[int], events: Records) -> None:
        self.rows, self.events = rows, events
        self.outer = next(filter(None, spaces), 0)  # of the command, whose pid the recorder has
        self.spaces, self.space_of = spaces, {0: self.outer}  # of rows; of started epochs
        self.last: dict[_Process, int] = {}  # row of the newest epoch
        self.made: dict[_Process, int] = {}  # fork without an epoch so far
        self.inside: dict[_Process, _Process] = {}  # in its parent's namespace -> in its own
        self.extra: list[Records] = []
        self.guesses = 0  # processes that may be others with the same pid
        self.next = int(rows["epoch"].max(initial=1)) + 1

    def _of_event(self, i: int) -> _Process:
        event = self.events[i]
        return self.space_of.get(int(event["epoch"]), self.outer), int(event["pid"])

    def note_fork(self, i: int) -> None:
        """Record a fork: its pid belongs to a new process."""
        process = self._of_event(i)
        self._add_silent_child(process, None)
        self.last.pop(process, None)
        self.inside.pop(process, None)
        self.made[process] = i

    def note_begin(self, i: int) -> None:
        """Record the first call of a child, or the start of a program."""
        row = self.rows[i]
        process = (self.spaces[i] or self._likely_space(row), int(row["pid"]))
        self.space_of[int(row["epoch"])] = process[0]
        fork = self.made.pop(process, None)
        if fork is not None:
            row["parent"], row["prev"] = self.events["epoch"][fork], 0
            if row["flags"] & lay.EXECED:
                row["prev"] = self._quiet(fork, row)
            else:
                row["start_ns"] = self.events["t"][fork]
        elif row["parent"]:
            self._enter(process, int(row["parent"]))
        elif process in self.last:
            before = self.rows[self.last[process]]
            row["prev"], row["parent"] = before["epoch"], before["parent"]
            if before["kind"] == lay.ALIVE:  # exec by an unrecorded program
                before["kind"], before["end_ns"] = lay.EXEC, row["start_ns"]
        self.last[process] = i

    def _likely_space(self, row: Any) -> int:
        """Guess the namespace of a program without /proc: where its pid was last made or execed."""
        if row["parent"]:
            return self.space_of.get(int(row["parent"]), self.outer)
        moments = []
        for space in set(self.space_of.values()):
            process = (space, int(row["pid"]))
            if process in self.made:
                moments.append((int(self.events["t"][self.made[process]]), space))
            elif process in self.last and self.rows[self.last[process]]["kind"] == lay.EXEC:
                moments.append((int(self.rows[self.last[process]]["end_ns"]), space))
        self.guesses += len(moments) > 1
        return max(moments, default=(0, self.outer))[1]

    def _enter(self, process: _Process, parent: int) -> None:
        """Match a child in another PID namespace than its parent: the fork has another pid."""
        forks = ((i, key) for key, i in self.made.items() if self.events["epoch"][i] == parent)
        if self.space_of.get(parent) != process[0] and (first := min(forks, default=None)):
            del self.made[first[1]]
            self.inside[first[1]] = process

    def note_wait(self, i: int) -> None:
        """Record the exit status that a parent received."""
        event, process = self.events[i], self._of_event(i)
        if process in self.made:
            self._add_silent_child(process, event)
        process = self.inside.pop(process, process)
        if process in self.last:
            self._end(self.last.pop(process), int(event["status"]), int(event["t"]))

    def note_end(self, end: dict[str, Any]) -> None:
        """Record the command's own exit status, which the recorder has; add silent children."""
        root, status = end.get("root"), end.get("wait_status")
        row = self.last.get((self.outer, root)) if isinstance(root, int) else None
        if row is not None and isinstance(status, int):
            self._end(row, status, int(end.get("ended_boot_ns", 0)))
        for process in list(self.made):
            self._add_silent_child(process, None)

    def _end(self, i: int, status: int, t: int) -> None:
        row = self.rows[i]
        if row["kind"] == lay.ALIVE or (row["kind"] == lay.EXIT and not row["end_ns"]):
            row["kind"], row["exit_status"], row["end_ns"] = lay.EXIT, status, t

    def _add_silent_child(self, process: _Process, end: Any) -> None:
        """Add a child that made no recorded call."""
        fork = self.made.pop(process, None)
        if fork is None:
            return
        row = self._child(fork)
        if end is not None:
            row["kind"], row["exit_status"], row["end_ns"] = lay.EXIT, end["status"], end["t"]

    def _quiet(self, fork: int, program: Any) -> int:
        """Add a child that made no call before it executed this program; return its epoch."""
        row = self._child(fork)
        row["kind"], row["end_ns"] = lay.EXEC, program["start_ns"]
        return int(row["epoch"][0])

    def _child(self, fork: int) -> Records:
        """Add the row of a child without a record of its own."""
        event = self.events[fork]
        row = np.zeros(1, lay.PROCESS_DT)
        row["kind"], row["epoch"], row["parent"] = lay.ALIVE, self.next, event["epoch"]
        row["pid"] = row["tgid"] = event["pid"]
        row["start_ns"] = event["t"]
        self.extra.append(row)
        self.next += 1
        return row

    def all(self) -> Records:
        """Return all rows; added ones have uid, directory and program of their parents."""
        if not self.extra:
            return self.rows
        extra = concat_records(*self.extra)
        order = np.argsort(self.rows["epoch"], kind="stable")
        epochs = self.rows["epoch"][order]
        at = np.searchsorted(epochs, extra["parent"], side="right") - 1
        there = (at >= 0) & (epochs[at] == extra["parent"])
        for name in ("uid", "cwd", "exe"):
            extra[name] = np.where(there, self.rows[name][order[at]], extra[name])
        return concat_records(self.rows, extra)


def totals_of_killed(episodes: Records, extents: Records) -> None:
    """Limit the totals of killed processes to their runs, in place: an operation is counted before
    its run is noted, and a kill may come between. episodes: EPISODE_DT, extents: EXTENT_DT.
    """
    whole = (episodes["close_ns"] == 0) & (episodes["lost_ops"] == 0)
    whole &= (episodes["state"] & (lay.PIPE | lay.PARTIAL)) == 0
    which = np.flatnonzero(whole)
    killed = filter_records(episodes, whole)
    for op in ("read", "write"):
        sums = [_sum_runs(killed, extents, lay.OPS.index(op), what) for what in ("bytes", "ops")]
        more = killed[f"{op}_bytes"] > sums[0]
        killed[f"{op}_bytes"][more] = sums[0][more]
        killed[f"{op}_ops"][more] = np.minimum(killed[f"{op}_ops"], sums[1])[more]
    most = killed["read_ops"] + killed["write_ops"]
    for name in ("seq_ops", "small_ops"):
        killed[name] = np.minimum(killed[name], most)
    episodes[which] = killed


def _sum_runs(episodes: Records, extents: Records, op: int, what: str) -> NDArray[np.uint64]:
    """Return bytes or operations of all runs of each episode: of runs sent, and the last two."""
    of_these = is_in(extents["open_id"], episodes["open_id"])
    runs = filter_records(extents, of_these & (extents["run"]["op"] == op))
    ids, places = np.unique(runs["open_id"], return_inverse=True)
    sums = np.zeros(len(ids) + 1, np.uint64)
    np.add.at(sums, places, runs["run"][what].astype(np.uint64))
    at = np.searchsorted(ids, episodes["open_id"])
    known = at < len(ids)
    known[known] = ids[at[known]] == episodes["open_id"][known]
    total = np.where(known, sums[np.minimum(at, len(ids))], np.uint64(0))
    for name in ("outer", "inner"):
        run = episodes[name]
        total += np.where((run["op"] == op) & (run["ops"] > 0), run[what], 0).astype(np.uint64)
    return total


_DTYPES = {
    lay.EPISODE: lay.EPISODE_DT,
    lay.EXTENT: lay.EXTENT_DT,
    lay.NAME: lay.NAME_DT,
    al.EVENT: al.EVENT_DT,
    al.BRIEF: al.BRIEF_DT,
}
_EPISODE_TIMES = ("open_ns", "close_ns", "first_ns")


@dataclass
class Arena:
    """The file and its chunks."""

    data: NDArray[np.uint8]
    head: Any  # HEAD_DT, one record
    chunks: Records  # CHUNK_DT, in order of position


def read_arena(path: Path) -> NDArray[np.uint8]:
    """Read the used part of the file. Raises BundleError.

    It is not mapped: reading a hole of a mapped file may need a block on a full disk, which
    causes a signal.
    """
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size < al.PAGE:
            raise OSError("no regular file, or too short")
        head = np.fromfile(path, al.HEAD_DT, 1)[0]
        used = min(int(head["used"]), int(head["allocated"]), path.stat().st_size)
        return np.fromfile(path, np.uint8, max(used, al.HEAD_DT.itemsize))
    except (OSError, ValueError, IndexError, MemoryError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the run again.") from None


def arena_of(data: NDArray[np.uint8]) -> Arena:
    """Find the chunks in the content of an arena. Raises BundleError."""
    if len(data) < al.HEAD_DT.itemsize:
        raise BundleError("an arena is cut off", "Record the run again.")
    head = data[: al.HEAD_DT.itemsize].view(al.HEAD_DT)[0]
    if head["magic"] != al.MAGIC or head["version"] != al.VERSION:
        raise BundleError(
            "an arena of another version", "Convert it with the tracehint that recorded."
        )
    data = data[: len(data) // al.PAGE * al.PAGE]
    return Arena(data, head, _chunks(data))


def _chunks(data: NDArray[np.uint8]) -> Records:
    """Return the headers of pages that begin a chunk: with its magic number and own position."""
    pages = data.reshape(-1, al.PAGE)[:, : al.CHUNK_DT.itemsize]
    heads = np.ascontiguousarray(pages).view(al.CHUNK_DT).reshape(-1)
    place = np.arange(len(heads), dtype=np.uint64) * np.uint64(al.PAGE)
    fits = (heads["magic"] == al.CHUNK_MAGIC) & (heads["self"] == place)
    fits &= place + heads["size"] <= len(data)
    chunks: Records = heads[fits]
    return chunks


def _records(arena: Arena, kind: int) -> Records:
    """Return all complete records of a kind, chunk by chunk."""
    dtype = _DTYPES[kind]
    chunks = arena.chunks[arena.chunks["kind"] == kind]
    room = np.minimum(chunks["used"], chunks["size"]).astype(np.int64) - al.CHUNK_DT.itemsize
    counts = np.maximum(room, 0) // dtype.itemsize
    starts = chunks["self"].astype(np.int64) + al.CHUNK_DT.itemsize
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    at = np.repeat(starts, counts) + within * dtype.itemsize
    return gather_records(arena.data, at, dtype)


def _pages(arena: Arena) -> Records:
    chunks = arena.chunks[
        (arena.chunks["kind"] == lay.ALIVE) & (arena.chunks["size"] >= al.PAGE_DT.itemsize)
    ]
    return gather_records(arena.data, chunks["self"].astype(np.int64), al.PAGE_DT)


def _without_failed_execs(pages: Records) -> Records:
    """Drop pages written for a program that cannot be entered and then was not executed."""
    proc = pages["proc"]
    executed = proc["hashed"][proc["kind"] == lay.EXEC]
    return filter_records(pages, (pages["unentered"] == 0) | is_in(proc["epoch"], executed))


def _with_closed(episodes: Records, briefs: Records) -> Records:
    """Return full episodes, and closed ones rebuilt from their brief records."""
    briefs = filter_records(briefs, briefs["kind"] == al.BRIEF)
    episodes = filter_records(episodes, episodes["kind"] == lay.EPISODE)
    episodes = filter_records(episodes, ~is_in(episodes["open_id"], briefs["open_id"]))
    closed = np.zeros(len(briefs), lay.EPISODE_DT)
    for name in al.BRIEF_DT.names or ():
        if name != "last_ns":
            closed[name] = briefs[name]
    closed["kind"] = lay.EPISODE
    closed["epoch"] = briefs["open_id"] >> np.uint64(32)
    closed["inner"]["last_ns"] = briefs["last_ns"]
    return concat_records(episodes, closed)


def _drop_duplicate_runs(episodes: Records, extents: Records) -> None:
    """Remove the copy in the episode of a run that was being moved to its next place when its
    process was killed."""
    inside = (episodes["outer"]["ops"] > 0) | (episodes["inner"]["ops"] > 0)
    at = np.flatnonzero(inside)
    mine = filter_records(episodes, inside)
    ids = (mine["open_id"], mine["open_id"], extents["open_id"])
    keys = _run_keys(ids, (mine["outer"], mine["inner"], extents["run"]))
    outer, inner, sent = np.split(keys, [len(mine), 2 * len(mine)])
    twice = is_in(inner, sent) | ((inner == outer) & (mine["outer"]["ops"] > 0))
    episodes["inner"]["ops"][at[twice]] = 0
    episodes["outer"]["ops"][at[is_in(outer, sent)]] = 0


def _run_keys(open_ids: tuple[Records, ...], runs: tuple[Records, ...]) -> NDArray[np.int64]:
    """Number all these runs in their order, so that only equal runs of a session are equal."""
    columns = [np.concatenate([run[name] for run in runs]) for name in ("first_ns", "start", "op")]
    return number_rows(np.concatenate(open_ids), *columns)


def _times(records: Records, names: tuple[str, ...], clock: Clock) -> None:
    for name in names:
        records[name] = clock.boot(records[name])


def arena_records(
    data: NDArray[np.uint8], start: dict[str, Any], end: dict[str, Any], links: RealPaths
) -> tuple[dict[str, Records], NDArray[np.uint8], list[ProcessLoss]]:
    """Return the spool's records, its heap, and losses of processes: (epoch, kind, what).

    start, end: facts that the recorder wrote at its start and end. Raises BundleError.
    """
    arena = arena_of(data)
    every = _pages(arena)
    pages = _without_failed_execs(every)
    clock = clock_of(pages["began"], start, end)
    texts = Texts(arena.data, links)
    episodes, extents = _records(arena, lay.EPISODE), _records(arena, lay.EXTENT)
    episodes = concat_records(every["first"].reshape(-1), episodes)
    episodes = _with_closed(episodes, _records(arena, al.BRIEF))
    extents = filter_records(extents, extents["kind"] == lay.EXTENT)
    _drop_duplicate_runs(episodes, extents)
    totals_of_killed(episodes, extents)
    names, events = _records(arena, lay.NAME), _records(arena, al.EVENT)
    names = filter_records(names, names["t_ns"] > 0)
    events = filter_records(events, (events["kind"] == al.FORK) | (events["kind"] == al.WAIT))
    _times(episodes, _EPISODE_TIMES, clock)
    for run in (episodes["outer"], episodes["inner"], extents["run"]):
        _times(run, ("first_ns", "last_ns"), clock)
    _times(names, ("t_ns",), clock)
    _times(events, ("t",), clock)
    processes = pages["proc"].copy()
    processes["hashed"] = 0
    _times(processes, ("start_ns", "end_ns"), clock)
    processes, guesses = fill_tree(processes, pages["space"], events, end)
    _grow_killed_files(episodes)
    records = {"episodes": episodes, "extents": extents, "processes": processes}
    records["losses"] = _losses(arena, guesses)
    records |= texts.tables(episodes, processes, names, pages["exec"])
    losses = _unentered_programs(filter_records(pages, pages["unentered"] > 0))
    return records, texts.heap(), losses + _unknown_names(pages, texts)


def _unentered_programs(pages: Records) -> list[ProcessLoss]:
    last = len(al.CLASSES) - 1
    kinds = np.minimum(pages["unentered"], last).tolist()
    epochs = pages["proc"]["epoch"].tolist()
    return [(epoch, UNENTERED, al.CLASSES[kind]) for epoch, kind in zip(epochs, kinds, strict=True)]


def _unknown_names(pages: Records, texts: Texts) -> list[ProcessLoss]:
    """Return losses of processes whose own file names cannot be mapped to names outside."""
    bases = {text: texts.base(text) for text in distinct(pages["mounts"]).tolist() if text}
    unknown = [text for text, base in bases.items() if not texts.links.outside.knows(base)]
    own = filter_records(pages, np.isin(pages["mounts"], unknown))
    return [(epoch, OWN_NAMES, _REMEDY) for epoch in own["proc"]["epoch"].tolist()]


def _grow_killed_files(episodes: Records) -> None:
    """Raise the size of files of killed processes to the end of what was written to them."""
    for run in (episodes["outer"], episodes["inner"]):
        wrote = (run["op"] == lay.OPS.index("write")) & (run["ops"] > 0)
        last = np.where(run["count"] > 1, run["stride"].astype(np.int64), 0) * (
            np.maximum(run["count"], 1).astype(np.int64) - 1
        )
        ends = run["start"].astype(np.int64) + last + run["length"].astype(np.int64)
        unknown = wrote & (episodes["close_ns"] == 0)
        grown = np.maximum(episodes["size_close"].astype(np.int64), ends)
        episodes["size_close"] = np.where(unknown, grown, episodes["size_close"])


def _losses(arena: Arena, guesses: int) -> Records:
    lost = np.zeros(lay.LOST + 1, lay.LOSS_DT)
    lost["kind"][: lay.LOST] = np.arange(lay.LOST)
    lost["count"][: lay.LOST] = arena.head["lost"][: lay.LOST]
    lost["count"][lay.LOST_LIFECYCLE] += guesses
    lost["kind"][lay.LOST], lost["count"][lay.LOST] = 65, arena.head["unplaced"]
    return lost[lost["count"] > 0]
