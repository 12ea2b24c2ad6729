"""One row per file: who made and who read it, by type, how many, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, finder, ints
from tracehint.hintgen.users import Users, counts_by_file

if TYPE_CHECKING:
    import duckdb


def add_file_types(con: duckdb.DuckDBPyConnection, users: Users, files: Ints) -> None:
    """Make `file_types` of the files: file; producers, consumers: the types of its writers and
    readers as a text, made, used: the numbers of these; n_producers, n_consumers: tasks,
    n_readers: those that do not only peek; written_s, last_read_s. Null where there are none.

    `con` has what typesets.py makes. Texts stay numbers of the few that occur, which for as many
    files takes a tenth of the memory.
    """
    import pyarrow as pa

    sets = con.execute("SELECT file, made, used FROM type_set").fetchnumpy()
    words = con.execute("SELECT text, told FROM type_words ORDER BY number").fetchnumpy()
    texts, told = pa.array(words["text"].tolist(), pa.string()), ints(words["told"])
    columns = {"file": pa.array(files)}
    place = finder(ints(sets["file"]))(files)
    for text, number, name in (("producers", "made", "made"), ("consumers", "used", "used")):
        which = _at(np.ma.filled(sets[name], -1), place)
        mask = which < 0
        columns[text] = pa.DictionaryArray.from_arrays(
            pa.array(which.astype(np.int32), mask=mask), texts
        )
        number_of = told[np.maximum(which, 0)] if len(told) else which
        columns[number] = pa.array(number_of.astype(np.int32), mask=mask)
    counts = ((users.made, "producers", "written_s"), (users.read, "consumers", "last_read_s"))
    for side, name, when in counts:
        found = counts_by_file(side)
        row = finder(ints(found["file"].to_numpy()))(files)
        at = pa.array(row, mask=row < 0)
        columns[f"n_{name}"] = found["tasks"].take(at).cast(pa.int32())
        if name == "consumers":
            columns["n_readers"] = found["whole"].take(at).cast(pa.int32())
        columns[when] = found["last_s"].take(at)
    con.register("file_types", pa.table(columns))


def _at(values: Ints, place: Ints) -> Ints:
    """The value at each place, -1 at none."""
    return np.append(ints(values), -1)[place]
