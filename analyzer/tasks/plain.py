"""Descriptions of plain commands by columns; all others go through `describe` one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.tasks.command import base_name
from tracehint.analyzer.tasks.describe import COMMAND_LENGTH, LOOKED_INTO, NAME_LENGTH
from tracehint.analyzer.tasks.tree import Bools

if TYPE_CHECKING:
    import pyarrow as pa

_WORD = "^[!-~]+$"
_WORDS = "^[!-~]+( [!-~]+)*$"


def plain_descriptions(argv: pa.ListArray) -> tuple[dict[str, pa.Array], Bools]:
    """Columns name, type, command, and where they hold: what `describe` would give.

    A command is plain when its first word is a program that is itself the type, and its words
    are of printable ASCII, none of them empty.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = pc.fill_null(pc.binary_join(argv, b" "), b"")
    easy = pc.and_(
        pc.match_substring_regex(joined, _WORDS),
        pc.less_equal(pc.binary_length(joined), COMMAND_LENGTH),
    )
    some = pc.fill_null(pc.greater(pc.list_value_length(argv), 0), False)
    heads = pc.list_element(argv.filter(some), 0)
    encoded = heads.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    good = pc.match_substring_regex(encoded.dictionary, _WORD).to_numpy(zero_copy_only=False)
    bases = [base_name(word) if ok else "" for word, ok in zip(words, good, strict=True)]
    code = np.full(len(argv), len(words), np.int64)
    code[some.to_numpy(zero_copy_only=False)] = encoded.indices.fill_null(len(words)).to_numpy(
        zero_copy_only=False
    )
    known = np.array([base not in LOOKED_INTO for base in bases] + [False], bool)
    holds = np.asarray(easy.to_numpy(zero_copy_only=False), bool) & known[code]

    rows = pa.array(code)
    command = pc.if_else(pa.array(holds), joined, pa.scalar(b"", joined.type)).cast(pa.string())
    short = [
        _without_folder(w.decode("ascii")) if ok else "" for w, ok in zip(words, good, strict=True)
    ]
    cut = np.array([len(w) for w in words] + [0])[code]
    name = _names(command, pa.array([*short, ""], pa.string()).take(rows), cut)
    kind = pa.array([*bases, ""], pa.string()).take(rows)
    return {"name": name, "type": kind, "command": command}, holds


def _without_folder(first: str) -> str:
    if "/" not in first or "=" in first or first.startswith(("'", '"')):
        return first
    return first.rstrip("/").rpartition("/")[2] or first


def _names(command: pa.Array, short: pa.Array, cut: np.ndarray) -> pa.Array:
    """The command with `short` instead of its first `cut` characters, of bounded length."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rest = command
    for length in np.unique(cut).tolist():  # as many as there are lengths of program paths
        tail = pc.utf8_slice_codeunits(command, length)
        rest = pc.if_else(pa.array(cut == length), tail, rest)
    full = pc.binary_join_element_wise(short, rest, "")
    bounded = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(full, 0, NAME_LENGTH - 1), "…", ""
    )
    return pc.if_else(pc.greater(pc.utf8_length(full), NAME_LENGTH), bounded, full)
