"""Facts that hint rules are learned from, one row per path of a run.

A store places a file when it is created, so a path has one label: that of the version
whose placement saves most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    column,
    distinct,
    finder,
    floats,
    ints,
    lookup,
    order_by,
    starts_of,
)
from tracehint.analyzer.catalogue import asking_for
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.model import Analysis
from tracehint.hintgen import file_users
from tracehint.hintgen.file_users import (
    Members,
    Side,
    Users,
    last_readers,
    members_of,
    users_of,
    words_of,
)
from tracehint.hintgen.hints.mapping import PATTERN_HINTS
from tracehint.hintgen.hints.uses import USES


def use_of(made: Members, read: Members, wanted: Ints) -> pa.Array:
    """Return the use of each wanted file, as text (one of USES)."""
    gathers, spreads = _fans(made, read)
    readers, makers = read.counts(wanted), made.counts(wanted)
    code = np.select(
        [readers == 0, readers > 1, makers == 0],
        [USES.index("unread"), USES.index("shared"), USES.index("input_once")],
        USES.index("one_to_one") + np.isin(wanted, gathers) + 2 * np.isin(wanted, spreads),
    )
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(USES)).dictionary_decode()


def _fans(made: Members, read: Members) -> tuple[Ints, Ints]:
    """Return, of the files with one reader, those whose reader gathers such files from several
    producers, and those whose producer has several readers of such files."""
    one = made.groups[read.counts(made.groups) == 1]
    file = np.repeat(made.groups, np.diff(made.first))
    chosen = np.isin(file, one)
    file, maker = file[chosen], made.members[chosen]
    reader = read.only(file)
    return distinct(file[_several(reader, maker)]), distinct(file[_several(maker, reader)])


def _several(key: Ints, value: Ints) -> Bools:
    """Return a mask of the rows whose key occurs with at least two values."""
    order = np.lexsort((value, key))
    first = starts_of(key[order], value[order])
    keys = key[order][first]
    return np.isin(key, keys[1:][keys[1:] == keys[:-1]])


# Ranges read by scatter readers or written by gather writers.
_REGIONS = """
with r as (
  select c.file, unnest(c.ranges) as r from consumers c join label using (file)
  where pattern = 'scatter' and not coalesce(c.peek, false)
  union all
  select p.file, unnest(p.ranges) as r from producers p join label using (file)
  where pattern = 'gather' and not coalesce(p.superseded, false)
)
select file, median(r[2] - r[1])::bigint as region_bytes,
       list_sort(list(distinct r[1])) as starts
from r where r[2] > r[1] group by file
"""
_NO_REGIONS = pa.schema(
    [("file", pa.int64()), ("region_bytes", pa.int64()), ("starts", pa.list_(pa.int64()))]
)


def labels_of(patterns: pa.Table) -> pa.Table:
    """Return one row per labelled file: file, pattern (of highest confidence), confidence,
    saves_bytes, grp, pays, copies (0: not copied)."""
    rows = np.flatnonzero(column(patterns, "primary", 0) > 0)
    rows = rows[order_by(column(patterns, "file")[rows])]
    file = column(patterns, "file")[rows]
    first = starts_of(file)
    sure = np.nan_to_num(floats(patterns, "confidence")[rows])
    saves, group = column(patterns, "saves_bytes", 0)[rows], column(patterns, "group")[rows]
    placement = patterns["placement"].cast(pa.string())
    pays = pc.fill_null(pc.not_equal(placement, "default"), True).to_numpy()[rows]
    copies = _copies(placement)[rows]
    if len(first) < len(rows):
        most = np.maximum.reduceat(sure, first)
        best = sure == np.repeat(most, np.diff(np.append(first, len(rows))))
        rows = rows[best][starts_of(file[best])]
        sure = most
        saves, group = (np.maximum.reduceat(values, first) for values in (saves, group))
        pays = np.logical_or.reduceat(pays, first)
        copies = np.maximum.reduceat(copies, first)
    return pa.table(
        {
            "file": file[first],
            "pattern": patterns["pattern"].take(pa.array(rows)).cast(pa.string()),
            "confidence": sure,
            "saves_bytes": saves,
            "grp": pa.array(group, mask=group < 0),
            "pays": pays,
            "copies": copies,
        }
    )


def _copies(placement: pa.ChunkedArray) -> Ints:
    """Return the number of copies of each placement `replicas=N`, 0 for other placements."""
    words = placement.combine_chunks().dictionary_encode()
    counts = [
        int(word.partition("=")[2]) if word and word.startswith("replicas=") else 0
        for word in words.dictionary.to_pylist()
    ]
    return ints([*counts, 0])[ints(pc.fill_null(words.indices, len(counts)).to_numpy())]


def regions_of(analysis: Analysis, label: pa.Table) -> pa.Table:
    """Return one row per file that is accessed in regions: file, region_bytes (median), starts."""
    import duckdb

    parted = pc.is_in(label["pattern"], pa.array(["scatter", "gather"]))
    label = label.filter(parted)
    if not label.num_rows:
        return _NO_REGIONS.empty_table()
    con = duckdb.connect()
    con.register("label", label.select(["file", "pattern"]))
    con.register("producers", analysis.producers)
    con.register("consumers", analysis.consumers)
    found: pa.Table = con.sql(_REGIONS).to_arrow_table()
    con.close()
    return found


MANY_PIECES = 16  # ranges per reader; a sequential reader has fewer
SMALL = 65536  # bytes per range


def reread(read: Side, wanted: Ints) -> pa.Array:
    """Return the median of (bytes moved / distinct bytes) of each file's readers; null: unknown."""
    moved, unique = (column(read.table, name)[read.row] for name in ("bytes", "unique_bytes"))
    some = (unique > 0) & (moved >= 0)
    files, value = medians(read.file[some], moved[some] / unique[some])
    at = lookup(files, np.arange(len(files)), wanted)
    return pa.array(value).take(pa.array(at, mask=at < 0))


def find_untimed(read: Side, wanted: Ints) -> Bools:
    """Return a mask of the wanted files that have readers, none of them with a time."""
    timed = ~np.isnan(floats(read.table, "first_s")[read.row])
    return np.isin(wanted, read.file) & ~np.isin(wanted, read.file[timed])


def random(read: Side, wanted: Ints) -> Bools:
    """Return a mask of the wanted files that are read in many small ranges."""
    lengths = pc.fill_null(pc.list_value_length(read.table["ranges"]), 0)
    pieces = ints(lengths.to_numpy())[read.row]
    chosen = np.isin(read.file, read.file[pieces > MANY_PIECES])
    if not chosen.any():
        return np.zeros(len(wanted), bool)
    files, most = _largest(read.file[chosen], pieces[chosen])
    unique = column(read.table, "unique_bytes")[read.row]
    known = chosen & (unique >= 0)
    of, size = medians(read.file[known], unique[known])
    small = size / most[np.searchsorted(files, of)] < SMALL
    return np.isin(wanted, of[small])


def _largest(group: Ints, value: Ints) -> tuple[Ints, Ints]:
    order = order_by(group)
    first = starts_of(group[order])
    return group[order][first], np.maximum.reduceat(value[order], first)


def medians(group: Ints, value: np.ndarray) -> tuple[Ints, np.ndarray]:
    """Return sorted groups and their medians (mean of the middle two for an even number)."""
    if not len(group):
        return ints([]), np.zeros(0)
    order = order_by(group)
    group, value = group[order], np.asarray(value, np.float64)[order]
    first = starts_of(group)
    low, high = (side.reduceat(value, first) for side in (np.minimum, np.maximum))
    varied = np.repeat(low != high, np.diff(np.append(first, len(group))))
    if varied.any():  # sorted only if values differ, which is rare
        value[varied] = value[varied][np.lexsort((value[varied], group[varied]))]
        end = np.append(first[1:], len(group))
        low, high = value[(first + end - 1) // 2], value[(first + end) // 2]
    return group[first], low * 0.5 + high * 0.5


GROUP_BITS = 40  # low bits of a group number in joined facts; the bits above are the run

# Columns: path (binary), file, label (primary pattern), pattern (the label if it has hints, else
# ""), confidence, saves_bytes, copies (of its placement), pays, grp, group_task, group_bytes,
# size_bytes, role, deleted, producers, consumers (lists of task numbers, without header reads),
# producer_types, consumer_types (sorted lists), use, region_bytes, starts, random, reread,
# last_reader (null: no reader is last for all timings).
_ROLES = ("input", "intermediate", "output")


def facts_of(
    analysis: Analysis, named: Callable[[pa.Array], None] | None = None, users: Users | None = None
) -> pa.Table:
    """Return one row per path below the data roots (inputs, intermediates and outputs only).

    `named` is called with the paths first. `users`: those of the analysis, if already computed."""
    users = users or users_of(analysis)
    last = last_readers(users, analysis.edges)  # first, as it needs most memory
    give_back()
    label = labels_of(analysis.patterns)
    files = _placed_files(analysis.files, label)
    if named is not None:
        named(files["path"].combine_chunks())
    region = regions_of(analysis, label)
    file = column(files, "file")
    label_row, within = _at(label, "file", file), _at(region, "file", file)
    labelled = _label_columns(analysis.groups, label, label_row)
    give_back()
    columns = {
        "path": files["path"],
        "file": files["file"],
        **labelled,
        "pays": pc.or_(
            pc.fill_null(label["pays"].take(label_row), False),
            _find_untimed_broadcasts(labelled["label"], files["size_bytes"], users, file, analysis),
        ),
        "size_bytes": pc.fill_null(files["size_bytes"], 0),
        "role": files["role"],
        "deleted": pc.fill_null(files["deleted"], False),
        **_users_of_files(users, file),
    }
    give_back()
    columns |= {
        "region_bytes": region["region_bytes"].take(within),
        "starts": region["starts"].take(within),
        "random": random(users.whole, file),
        "reread": reread(users.whole, file),
        "last_reader": _last_reader_types(users, *last, file),
    }
    return pa.table(columns)


def _label_columns(
    groups: pa.Table, label: pa.Table, label_row: pa.Array
) -> dict[str, pa.ChunkedArray]:
    """Return the label columns of each file. `label_row`: its row in `label`; null: none."""
    pattern = pc.fill_null(label["pattern"].take(label_row), "")
    group = label["grp"].take(label_row)
    grouped = _at(groups, "group", _fill_null(group, -1))
    return {
        "label": pattern,
        "pattern": pc.if_else(_is_in(pattern, PATTERN_HINTS), pattern, ""),
        "confidence": pc.fill_null(label["confidence"].take(label_row), 0.0),
        "saves_bytes": pc.fill_null(label["saves_bytes"].take(label_row), 0),
        "copies": pc.fill_null(label["copies"].take(label_row), 0),
        "grp": group,
        "group_task": groups["task"].take(grouped),
        "group_bytes": groups["bytes"].take(grouped),
    }


def _users_of_files(users: Users, file: Ints) -> dict[str, pa.Array]:
    """Return the producers and consumers of each file, their types, and the file's use."""
    made = members_of(users.made.file, users.made.task)
    read = members_of(users.whole.file, users.whole.task)
    return {
        "producers": made.lists(file),
        "consumers": read.lists(file),
        "producer_types": words_of(users.made.file, users.made.kind, users.kinds, file),
        "consumer_types": words_of(users.whole.file, users.whole.kind, users.kinds, file),
        "use": use_of(made, read, file),
    }


def _find_untimed_broadcasts(
    pattern: pa.ChunkedArray, size: pa.ChunkedArray, users: Users, file: Ints, analysis: Analysis
) -> pa.Array:
    """Return a mask of untimed broadcasts (declared runs) of at least the cost of a call: they
    count as paying, since overlapping readers cannot be detected."""
    large = pc.greater_equal(size, int(analysis.options.call_cost_bytes))
    known = pa.array(find_untimed(users.whole, file))
    alone = pc.and_(known, pc.fill_null(large, False))
    return pc.and_(alone, _is_in(pattern, asking_for("replication")))


def _last_reader_types(users: Users, files: Ints, kind: Ints, file: Ints) -> pa.Array:
    """Return the type of each file's last reader. `files`, `kind`: from `last_readers`."""
    at = finder(files)(file)
    kinds = np.append(kind, -1)[at]
    return pa.array(users.kinds, pa.string()).take(pa.array(kinds, mask=kinds < 0))


def _placed_files(files: pa.Table, label: pa.Table) -> pa.Table:
    """Return one file per path, sorted by path: the labelled version whose placement saves most,
    otherwise the largest version."""
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
            -_fill_null(label["saves_bytes"].take(at), 0),
            -column(files, "size_bytes", 0),
            column(files, "version"),
            column(files, "file"),
        )
        files = files.take(order[starts_of(code[order])])
    return files.take(pc.array_sort_indices(files["path"].combine_chunks()))


def _codes(texts: pa.Array) -> Ints:
    return ints(texts.dictionary_encode().indices.to_numpy())


def _fill_null(values: pa.ChunkedArray, null: int) -> Ints:
    return ints(pc.fill_null(values, null).to_numpy())


def _is_in(values: pa.ChunkedArray, some: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(values, pa.array(some, pa.string()))


def _at(table: pa.Table, key: str, wanted: Ints) -> pa.Array:
    """Return the table's row of each wanted key; null: none."""
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
    """Return (producing types, consuming types) -> files with the same producers and consumers.

    0: the number varies. Pairs of types with a single pair of tasks are omitted: a number observed
    once may depend on the scale.
    """
    import duckdb

    con = duckdb.connect()
    con.register("facts", facts)
    rows = con.sql(_PER_PAIR).fetchall()
    con.close()
    return {(tuple(made), tuple(read)): most for made, read, most in rows}


def run_of(group: int) -> int:
    """Return the run of a group of joined facts."""
    return group >> GROUP_BITS


def nodes_of(analysis: Analysis) -> int:
    """Return the number of nodes that the analysis assumes, at least 2."""
    return max(2, int(analysis.run.get("nodes") or 0))


Pairs = frozenset[tuple[str, str]]  # (producing type, "" for inputs; consuming type)

# Header reads (peeks) are ignored unless all readers of the file only peek.
_PAIRS = """
with read as (select file from readers where not coalesce(peek, false)),
used as (
  select file, type, coalesce(peek, false) as peek, file not in (from read) as all_peek
  from readers
)
select coalesce(made.type, '') as maker, used.type as reader
from used left join (select distinct file, type from writers) made using (file)
group by all having bool_and(peek and not all_peek)
"""


def peeks_of(analysis: Analysis) -> Pairs:
    """Return pairs of types whose reads are all header reads of files that others read fully."""
    import duckdb
    import pyarrow.compute as pc

    if not pc.any(analysis.consumers["peek"]).as_py():
        return frozenset()
    con = duckdb.connect()
    for name in ("tasks", "producers", "consumers"):
        con.register(name, analysis.tables()[name])
    con.execute(file_users.VIEWS)
    rows = con.sql(_PAIRS).fetchall()
    con.close()
    return frozenset((maker, reader) for maker, reader in rows if reader is not None)


def find_agreed(found: Sequence[Pairs]) -> tuple[tuple[str, str], ...]:
    """Return the pairs common to all runs, sorted."""
    return tuple(sorted(frozenset.intersection(*found))) if found else ()
