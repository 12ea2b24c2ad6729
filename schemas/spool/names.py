"""Names of files over time: from opens (first sight of a path) and from calls that change names.

Which file a rename or unlink meant is known from the paths seen before it, or
from what the loader found under the new name, or from what is opened under the
new name later. The loop (spool_replay) runs over calls that change names and over first
sights of the paths in them, not over opens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.links import through_links
from tracehint.schemas.spool.opens import Sessions
from tracehint.schemas.spool.read import Spool
from tracehint.schemas.spool.replay import S_IFDIR, S_IFMT, S_IFREG, Names, Player
from tracehint.schemas.spool.rows import kept, picked


def first_sights(spool: Spool, ep: Sessions, paths: pa.Array) -> pa.Table:
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
            "proc": ep.rows["epoch"][row].astype(np.int64),
            "file": ep.file[row],
            "op": pa.array(np.where(created, "create", "open")),
            "path": path.take(pa.array(first)),
        }
    ).sort_by("t_ns")


def follow_names(spool: Spool, ep: Sessions, firsts: pa.Table) -> Names:
    """Play the changes of names in order."""
    events = spool.records["names"]
    events = kept(events, events["op"] < len(lay.NAME_OPS))
    events = picked(events, np.argsort(events["t_ns"], kind="stable"))
    out = Names(firsts=firsts)
    if not len(events):
        return out
    old = spool.texts(events["off"], events["len"]).to_pylist()
    new = spool.texts(events["new_off"], events["new_len"]).to_pylist()
    through_links([lay.NAME_OPS[op] for op in events["op"]], events["ino"].tolist(), old, new)
    _mark_directories(events, firsts, old, new)
    Player(out, ep).replay(spool, events, old, new, _relevant(firsts, events, old, new))
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
            events["mode"][i] = S_IFDIR


def _relevant(firsts: pa.Table, events: Any, old: list[bytes], new: list[bytes]) -> pa.Table:
    """First sights of paths that a change of names mentions, or below a renamed directory."""
    wanted = pa.array(sorted({*old, *new}), pa.binary())
    path = firsts.column("path").combine_chunks()
    keep = pc.is_in(path, value_set=wanted)
    directory = (events["mode"] & S_IFMT) == S_IFDIR
    for i in np.flatnonzero(directory & (events["op"] <= 1)):
        for text in {old[i], new[i]}:
            keep = pc.or_(keep, pc.starts_with(path, pattern=text + b"/"))
    files = firsts.filter(keep).column("file").unique()
    # every name of these files: a file is deleted when the last one is gone
    return firsts.filter(pc.is_in(firsts.column("file"), value_set=files))


def kind_of_mode(mode: NDArray[Any], pipe: NDArray[np.bool_]) -> pa.Array:
    """FILE_KINDS by file mode."""
    form = mode & S_IFMT
    kind = np.where(form == S_IFDIR, "dir", np.where(form == S_IFREG, "file", "other"))
    return pa.array(np.where(pipe, "pipe", kind))
