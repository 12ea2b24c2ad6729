"""The types of each file's writers and readers, as numbers of the few sets that occur.

Sets of words per file would be sorted lists that SQL compares one by one; there are as many files
as the run has, and hardly more sets than types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import Ints, distinct, ints

if TYPE_CHECKING:
    import duckdb

_KINDS = """
SELECT type, row_number() OVER (ORDER BY type) - 1 AS number FROM (SELECT DISTINCT type FROM work)
"""
_PAIRS = """
SELECT file * 2 + {side} AS at, number FROM {table} JOIN type_kind k
ON k.type IS NOT DISTINCT FROM {table}.type GROUP BY ALL
"""


def sets_of(group: Ints, member: Ints) -> tuple[Ints, Ints, list[tuple[int, ...]]]:
    """(sorted distinct groups, number of the set of each, the sets with sorted members).

    `member`: one of the members of each row's group, not negative.
    """
    many = int(member.max(initial=0)) + 1
    pairs = distinct(group * many + member)
    group, member = pairs // many, pairs % many
    groups, first, count = np.unique(group, return_index=True, return_counts=True)
    number, sets = np.full(len(groups), -1, np.int64), list[tuple[int, ...]]()
    going = np.arange(len(groups))
    place = 0
    while len(going):
        key = (number[going] + 1) * many + member[first[going] + place]
        kinds, inverse = np.unique(key, return_inverse=True)
        base = len(sets)
        for kind in kinds.tolist():
            before, last = divmod(kind, many)
            sets.append((*(sets[before - 1] if before else ()), last))
        number[going] = base + inverse
        place += 1
        going = going[count[going] > place]
    return groups, number, sets


def add_type_sets(con: duckdb.DuckDBPyConnection) -> None:
    """Make `type_set` (file, made, used: numbers of sets, null for none) and `type_words` (number,
    words: the sorted types, text: the same with commas). `con` has the views of relation.py."""
    import pyarrow as pa

    con.execute(f"CREATE TEMP TABLE type_kind AS {_KINDS}")
    words = [
        word for (word,) in con.execute("SELECT type FROM type_kind ORDER BY number").fetchall()
    ]
    parts: list[Any] = [
        con.execute(_PAIRS.format(side=side, table=table)).fetchnumpy()
        for side, table in enumerate(("writers", "readers"))
    ]
    at, member = (np.concatenate([ints(part[name]) for part in parts]) for name in ("at", "number"))
    groups, number, sets = sets_of(at, member)
    files = distinct(groups // 2)
    columns = {"file": pa.array(files)}
    for side, name in enumerate(("made", "used")):
        own = groups % 2 == side
        place = np.searchsorted(files, groups[own] // 2)
        values, there = np.zeros(len(files), np.int64), np.zeros(len(files), bool)
        values[place], there[place] = number[own], True
        columns[name] = pa.array(values, mask=~there)
    _keep(con, "type_set", pa.table(columns))
    texts = [[words[k] for k in some] for some in sets]
    told = [", ".join(word for word in some if word is not None) for some in texts]
    kinds = {
        "number": pa.array(range(len(sets)), pa.int64()),
        "words": pa.array(texts, pa.list_(pa.string())),
        "text": pa.array(told, pa.string()),
    }
    _keep(con, "type_words", pa.table(kinds))
    con.execute("DROP TABLE type_kind")


def _keep(con: duckdb.DuckDBPyConnection, name: str, table: Any) -> None:
    con.register("incoming", table)
    con.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM incoming")
    con.unregister("incoming")
