"""The types of each file's writers and readers, as numbers of the few sets that occur.

Sets of words per file would be sorted lists that SQL compares one by one; there are as many files
as the run has, and hardly more sets than types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, distinct, ints, numbered, starts_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.hintgen.users import Users


def numbers_of(group: Ints, member: Ints) -> tuple[Ints, Ints, Ints]:
    """(sorted distinct groups, number of the set of each, how each set is made of another one).

    `member`: one of the members of each row's group, not negative. A set is (number of the set
    without its largest member + 1) * (largest of all members + 1) + its largest member.
    """
    many = int(member.max(initial=0)) + 1
    pairs = distinct(group * many + member)
    group, member = pairs // many, pairs % many
    first = starts_of(group)
    groups, count = group[first], np.diff(np.append(first, len(group)))
    number, made = np.full(len(groups), -1, np.int64), [ints([])]
    going = np.arange(len(groups))
    place = base = 0
    while len(going):
        kinds, inverse = numbered((number[going] + 1) * many + member[first[going] + place])
        made.append(kinds)
        number[going] = base + inverse
        base, place = base + len(kinds), place + 1
        going = going[count[going] > place]
    return groups, number, np.concatenate(made)


def sets_of(group: Ints, member: Ints) -> tuple[Ints, Ints, list[tuple[int, ...]]]:
    """(sorted distinct groups, number of the set of each, the sets with sorted members); as
    `numbers_of`, for few sets."""
    many = int(member.max(initial=0)) + 1
    groups, number, made = numbers_of(group, member)
    sets = list[tuple[int, ...]]()
    for one in made.tolist():
        before, last = divmod(one, many)
        sets.append((*(sets[before - 1] if before else ()), last))
    return groups, number, sets


def add_type_sets(con: duckdb.DuckDBPyConnection, users: Users) -> pa.Table:
    """Make `type_set` (file, made, used: numbers of sets, null for none) and `type_words` (number,
    words: the sorted types, text: the same with commas, told: the number of that text). Returns
    the first."""
    import pyarrow as pa

    at = np.concatenate([users.made.file * 2, users.read.file * 2 + 1])
    groups, number, sets = sets_of(at, np.concatenate([users.made.kind, users.read.kind]))
    files = distinct(groups // 2)
    columns = {"file": pa.array(files)}
    for side, name in enumerate(("made", "used")):
        own = groups % 2 == side
        values = np.full(len(files), -1, np.int32)
        values[np.searchsorted(files, groups[own] // 2)] = number[own]
        columns[name] = pa.array(values, mask=values < 0)
    of_files = pa.table(columns)
    con.register("type_set", of_files)
    texts = [[users.kinds[k] for k in some] for some in sets]
    told = [", ".join(word for word in some if word is not None) for some in texts]
    kinds = {
        "number": pa.array(range(len(sets)), pa.int64()),
        "words": pa.array(texts, pa.list_(pa.string())),
        "text": pa.array(told, pa.string()),
        "told": pa.array(told, pa.string()).dictionary_encode().indices,
    }
    con.register("type_words", pa.table(kinds))
    return of_files
