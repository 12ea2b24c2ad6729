"""Groups of files that the learner cannot distinguish, and their statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, group_equal_rows, ints, order_by, rank_values, starts_of
from tracehint.hintgen.file_users import numbers_of

SAMPLES = 400  # paths kept per file group, to name groups and for checks
Types = tuple[str, ...]
Sample = tuple[bytes, int | None]  # path, group


@dataclass(frozen=True)
class FileGroup:
    """Files with the same shape, types, use and pattern."""

    shape: bytes
    producers: Types
    consumers: Types
    use: str
    pattern: str
    files: int
    size_sum: int  # bytes of all files
    saves_bytes: int
    paying: int  # files for which the cost model predicts a gain
    group_bytes: int  # bytes of the largest group among them, 0: no groups
    confidence: float
    readers: int  # median
    copies: int  # median of the files with copies, 0: none has
    min_readers: int
    max_readers: int
    size: int  # median
    size_min: int
    size_max: int
    region: int
    starts: tuple[int, ...]
    samples: tuple[Sample, ...]
    traits: tuple[tuple[str, Any], ...]  # for advisory hints


_KEYS = ("shape", "producer_types", "consumer_types", "use", "pattern")  # equal within a group
_FILE_GROUPS = """
select count(*) as files, sum(size_bytes)::bigint as size_sum,
       sum(saves_bytes)::bigint as saves_bytes,
       count(*) filter (pays) as paying, coalesce(max(group_bytes), 0)::bigint as group_bytes,
       min(confidence) as confidence, median(readers)::bigint as readers,
       coalesce(median(copies) filter (copies > 0), 0)::bigint as copies,
       min(readers) as min_readers, max(readers) as max_readers,
       median(size_bytes)::bigint as size, min(size_bytes)::bigint as size_min,
       max(size_bytes)::bigint as size_max,
       coalesce(median(region_bytes), 0)::bigint as region,
       any_value(starts) as starts,
       any_value(last_reader) as last_reader,
       count(distinct last_reader) = 1 and bool_and(last_reader is not null) as last_known,
       any_value(role) as role, count(distinct role) as roles, bool_and(random) as random,
       coalesce(median(reread), 1) as reread, bool_and(deleted) as deleted
from facts group by number order by number
"""
_TRAITS = ("last_reader", "last_known", "role", "roles", "random", "reread", "deleted", "size")


def file_groups_of(facts: pa.Table) -> list[FileGroup]:
    """Group facts with shapes by (shape, types, use, pattern); see `facts.facts_of`."""
    import duckdb

    if not facts.num_rows:
        return []
    number = _numbers(facts)
    order = order_by(number, _by_path(facts["path"]))
    first = starts_of(number[order])
    con = duckdb.connect()
    counted = facts.drop_columns([*_KEYS, "path", "producers", "consumers"])
    readers = pc.list_value_length(facts["consumers"])
    counted = counted.append_column("readers", readers)
    con.register("facts", counted.append_column("number", pa.array(number)))
    rows = con.sql(_FILE_GROUPS).to_arrow_table().to_pylist()
    con.close()
    alike = facts.select(_KEYS).take(pa.array(order[first])).to_pylist()
    samples = _samples(facts, order, first)
    groups = [_file_group({**a, **b}, c) for a, b, c in zip(alike, rows, samples, strict=True)]
    return sorted(groups, key=lambda g: (g.shape, g.producers, g.consumers, g.use, g.pattern))


def _numbers(facts: pa.Table) -> Ints:
    """Return a group number per row, equal for files with the same values of _KEYS."""
    number = np.zeros(facts.num_rows, np.int64)
    for name in _KEYS:
        column = facts[name].combine_chunks()
        code = _of_lists(column) if pa.types.is_list(column.type) else _of_texts(column)
        number = rank_values(number * (int(code.max()) + 1) + code)[1]
    return number


def _of_texts(texts: pa.Array) -> Ints:
    return ints(texts.dictionary_encode().indices.to_numpy())


def _of_lists(lists: pa.ListArray) -> Ints:
    """Return a number for each distinct list of sorted distinct texts; 0: empty."""
    rows, kinds, _ = numbers_of(
        ints(pc.list_parent_indices(lists).to_numpy()), _of_texts(pc.list_flatten(lists))
    )
    code = np.zeros(len(lists), np.int64)
    code[rows] = kinds + 1
    return code


def _by_path(paths: pa.ChunkedArray) -> Ints:
    """Return the rank of each row by path."""
    whole = paths.combine_chunks()
    rank = np.arange(len(whole))
    if pc.all(pc.less_equal(whole[:-1], whole[1:])).as_py() is False:
        rank[pc.array_sort_indices(whole).to_numpy()] = np.arange(len(whole))
    return rank


def _samples(facts: pa.Table, order: Ints, first: Ints) -> Iterator[tuple[Sample, ...]]:
    """Return the first SAMPLES paths of each group. `order`: the rows by group, then path."""
    count = np.diff(np.append(first, len(order)))
    kept = np.minimum(count, SAMPLES)
    place = np.arange(len(order)) - np.repeat(first, count)
    some = facts.select(["path", "grp"]).take(pa.array(order[place < SAMPLES]))
    pairs = zip(some["path"].to_pylist(), some["grp"].to_pylist(), strict=True)
    return (tuple(islice(pairs, many)) for many in kept.tolist())


def _file_group(row: dict[str, Any], samples: tuple[Sample, ...]) -> FileGroup:
    return FileGroup(
        producers=tuple(row["producer_types"]),
        consumers=tuple(row["consumer_types"]),
        starts=tuple(row["starts"] or ()),
        samples=samples,
        traits=tuple((key, row[key]) for key in _TRAITS),
        **{
            key: row[key]
            for key in (
                "shape",
                "use",
                "pattern",
                "files",
                "size_sum",
                "saves_bytes",
                "paying",
                "group_bytes",
                "confidence",
                "readers",
                "copies",
                "min_readers",
                "max_readers",
                "size",
                "size_min",
                "size_max",
                "region",
            )
        },
    )


_LONG = 64  # members above which a list is compared as a whole, not element by element


def lengths(column: pa.ChunkedArray) -> list[int]:
    """Return the length of each list; 0 for a null."""
    found: list[int] = pc.fill_null(pc.list_value_length(column), 0).to_pylist()
    return found


def lists(column: pa.ChunkedArray) -> list[list[Any]]:
    """Return the lists; an empty one for a null."""
    flat = pc.list_flatten(column).to_pylist()
    ends = np.cumsum([0, *lengths(column)]).tolist()
    return [flat[start:end] for start, end in pairwise(ends)]


def codes(column: pa.ChunkedArray) -> Ints:
    """Return a number for each distinct value, including null; lists are not supported."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return ints(coded.indices.to_numpy())


def word_sets(column: pa.ChunkedArray) -> tuple[list[tuple[str, ...]], Ints]:
    """Return the distinct lists of words and the index of each row's list. Lists are sorted, so
    that equal sets are equal lists; few of them differ."""
    first, code = group_equal_rows(sets_in(column))
    return list(map(tuple, lists(column.take(first)))), code


def first_of(column: pa.ChunkedArray) -> Ints:
    """Return the first number of each list; -1: empty."""
    flat = ints(column.combine_chunks().flatten().to_numpy())
    count = ints(lengths(column))
    return np.where(count > 0, np.append(flat, -1)[np.cumsum(count) - count], -1)


def sets_in(column: pa.ChunkedArray) -> Ints:
    """Return a number for each row's set, given as a list of sorted distinct values; 0: empty."""
    member = codes(pa.chunked_array([column.combine_chunks().flatten()]))
    count = ints(lengths(column))
    row, long = np.repeat(np.arange(len(count)), count), np.repeat(count > _LONG, count)
    rows, number, made = numbers_of(row[~long], member[~long])
    found = np.zeros(len(count), np.int64)
    found[rows] = number + 1
    first = np.cumsum(count) - count
    known: dict[bytes, int] = {}
    for at in np.flatnonzero(count > _LONG).tolist():
        one = member[first[at] : first[at] + count[at]].tobytes()
        found[at] = known.setdefault(one, len(made) + 1 + len(known))
    return found
