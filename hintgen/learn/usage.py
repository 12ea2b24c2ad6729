"""How each file is used, as hints/uses.py tells it, of all files of a recorded run at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Bools, Ints, distinct, starts_of
from tracehint.hintgen.hints.uses import USES
from tracehint.hintgen.members import Members


def use_of(made: Members, read: Members, wanted: Ints) -> pa.Array:
    """The use of each wanted file, as text."""
    gathers, spreads = _fans(made, read)
    readers, makers = read.counts(wanted), made.counts(wanted)
    code = np.select(
        [readers == 0, readers > 1, makers == 0],
        [USES.index("unread"), USES.index("shared"), USES.index("input_once")],
        USES.index("one_to_one") + np.isin(wanted, gathers) + 2 * np.isin(wanted, spreads),
    )
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(USES)).dictionary_decode()


def _fans(made: Members, read: Members) -> tuple[Ints, Ints]:
    """Files with one reader: of them those whose reader has several makers of such files, and
    those of which a maker has several readers."""
    one = made.groups[read.counts(made.groups) == 1]
    file = np.repeat(made.groups, np.diff(made.first))
    chosen = np.isin(file, one)
    file, maker = file[chosen], made.members[chosen]
    reader = read.only(file)
    return distinct(file[_several(reader, maker)]), distinct(file[_several(maker, reader)])


def _several(key: Ints, value: Ints) -> Bools:
    """Rows whose key comes with two values or more."""
    order = np.lexsort((value, key))
    first = starts_of(key[order], value[order])
    keys = key[order][first]
    return np.isin(key, keys[1:][keys[1:] == keys[:-1]])
