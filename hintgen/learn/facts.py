"""One row per path of a run: what the hint rules are learned from.

A store places a file when it is created, so a path has one label: that of the version
whose placement saves most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, finder, ints, order_by, starts_of
from tracehint.analyzer.catalogue import asking_for
from tracehint.analyzer.columns import column
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.mapping import PATTERN_HINTS
from tracehint.hintgen.last_reader import last_readers
from tracehint.hintgen.learn import reading
from tracehint.hintgen.learn.labels import labels_of, regions_of
from tracehint.hintgen.learn.usage import use_of
from tracehint.hintgen.members import members_of, words_of
from tracehint.hintgen.users import Users, users_of

GROUP_BITS = 40  # of a group's number, where facts of several runs are joined; above it: the run

# Columns: path (binary), file, label (primary pattern), pattern (the same where it gives hints,
# else ""), confidence, saves_bytes, pays, grp, group_task, group_bytes,
# size_bytes, role, deleted, producers, consumers (lists of task numbers, peeks aside),
# producer_types, consumer_types (sorted lists), use, region_bytes, region_align, random,
# reread, last_reader (null: none that is last whatever the timing).
_ROLES = ("input", "intermediate", "output")


def facts_of(
    analysis: Analysis, named: Callable[[pa.Array], None] | None = None, users: Users | None = None
) -> pa.Table:
    """One row per path below the data roots, inputs, intermediates and outputs only. `named` is
    given the paths before the rest is known. `users`: those of the analysis, where they are
    known."""
    users = users or users_of(analysis)
    last = last_readers(users, analysis.edges)  # takes most: before anything else is there
    give_back()
    label = labels_of(analysis.patterns)
    files = _placed(analysis.files, label)
    if named is not None:
        named(files["path"].combine_chunks())
    region = regions_of(analysis, label)
    file = column(files, "file")
    said, within = _at(label, "file", file), _at(region, "file", file)
    labelled = _said_of(analysis.groups, label, said)
    give_back()
    columns = {
        "path": files["path"],
        "file": files["file"],
        **labelled,
        "pays": pc.or_(
            pc.fill_null(label["pays"].take(said), False),
            _repays(labelled["label"], files["size_bytes"], users, file, analysis),
        ),
        "size_bytes": pc.fill_null(files["size_bytes"], 0),
        "role": files["role"],
        "deleted": pc.fill_null(files["deleted"], False),
        **_used(users, file),
    }
    give_back()
    columns |= {
        "region_bytes": region["region_bytes"].take(within),
        "starts": region["starts"].take(within),
        "random": reading.random(users.whole, file),
        "reread": reading.reread(users.whole, file),
        "last_reader": _last(users, *last, file),
    }
    return pa.table(columns)


def _said_of(groups: pa.Table, label: pa.Table, said: pa.Array) -> dict[str, pa.ChunkedArray]:
    """What the label of each file says. `said`: its row of the labels."""
    pattern = pc.fill_null(label["pattern"].take(said), "")
    group = label["grp"].take(said)
    grouped = _at(groups, "group", _filled(group, -1))
    return {
        "label": pattern,
        "pattern": pc.if_else(_is_in(pattern, PATTERN_HINTS), pattern, ""),
        "confidence": pc.fill_null(label["confidence"].take(said), 0.0),
        "saves_bytes": pc.fill_null(label["saves_bytes"].take(said), 0),
        "grp": group,
        "group_task": groups["task"].take(grouped),
        "group_bytes": groups["bytes"].take(grouped),
    }


def _used(users: Users, file: Ints) -> dict[str, pa.Array]:
    """Who makes and who reads each file, and what that is called."""
    made = members_of(users.made.file, users.made.task)
    read = members_of(users.whole.file, users.whole.task)
    return {
        "producers": made.lists(file),
        "consumers": read.lists(file),
        "producer_types": words_of(users.made.file, users.made.kind, users.kinds, file),
        "consumer_types": words_of(users.whole.file, users.whole.kind, users.kinds, file),
        "use": use_of(made, read, file),
    }


def _repays(
    pattern: pa.ChunkedArray, size: pa.ChunkedArray, users: Users, file: Ints, analysis: Analysis
) -> pa.Array:
    """Where nothing is known about times (a declared run), nobody can say that readers overlap:
    such broadcasts count as paying from the cost of a call on."""
    large = pc.greater_equal(size, int(analysis.options.call_cost_bytes))
    known = pa.array(reading.untimed(users.whole, file))
    alone = pc.and_(known, pc.fill_null(large, False))
    return pc.and_(alone, _is_in(pattern, asking_for("replication")))


def _last(users: Users, files: Ints, kind: Ints, file: Ints) -> pa.Array:
    """The type of each file's last reader, as `last_readers` has them."""
    at = finder(files)(file)
    kinds = np.append(kind, -1)[at]
    return pa.array(users.kinds, pa.string()).take(pa.array(kinds, mask=kinds < 0))


def _placed(files: pa.Table, label: pa.Table) -> pa.Table:
    """The file of each path that a store places, by path: the version that is labelled and whose
    placement saves most, else the largest one."""
    kept = pc.and_(_is_in(files["role"], _ROLES), pc.is_valid(files["path"]))
    columns = ["file", "version", "path", "role", "size_bytes", "deleted"]
    files = files.select(columns).filter(kept)
    paths = files["path"].combine_chunks()
    code = _codes(paths)
    if len(paths) and int(code.max()) + 1 < len(paths):
        at = _at(label, "file", column(files, "file"))
        order = order_by(
            code,
            column(pa.table({"bare": pc.is_null(label["pattern"].take(at))}), "bare"),
            -_filled(label["saves_bytes"].take(at), 0),
            -column(files, "size_bytes", 0),
            column(files, "version"),
            column(files, "file"),
        )
        files = files.take(order[starts_of(code[order])])
    return files.take(pc.array_sort_indices(files["path"].combine_chunks()))


def _codes(texts: pa.Array) -> Ints:
    return ints(texts.dictionary_encode().indices.to_numpy())


def _filled(values: pa.ChunkedArray, null: int) -> Ints:
    return ints(pc.fill_null(values, null).to_numpy())


def _is_in(values: pa.ChunkedArray, some: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(values, pa.array(some, pa.string()))


def _at(table: pa.Table, key: str, wanted: Ints) -> pa.Array:
    """The rows of a table with these keys; null: there is none."""
    at = finder(column(table, key))(wanted)
    return pa.array(at, mask=at < 0)


_PER_PAIR = """
with pairs as (
  select producer_types, consumer_types, count(*) as files from facts
  where len(producers) > 0 and len(consumers) > 0
  group by producer_types, consumer_types, producers, consumers
)
select producer_types, consumer_types,
       case when min(files) = max(files) then max(files) else 0 end as most
from pairs group by producer_types, consumer_types having count(*) > 1
"""


def files_per_pair(facts: pa.Table) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    """(producing types, consuming types) -> files with the same producers and consumers.

    0: it was not always the same number. Pairs of types with one pair of tasks are left out: what
    was seen once may follow the scale.
    """
    import duckdb

    con = duckdb.connect()
    con.register("facts", facts)
    rows = con.sql(_PER_PAIR).fetchall()
    con.close()
    return {(tuple(made), tuple(read)): most for made, read, most in rows}


def run_of(group: int) -> int:
    """The run that a group of joined facts belongs to."""
    return group >> GROUP_BITS


def nodes_of(analysis: Analysis) -> int:
    """Nodes that the analysis was made for, at least 2."""
    return max(2, int(analysis.run.get("nodes") or 0))
