"""Words of many texts at once: digits stay, so texts that differ in digits alone share the rest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Bools, ints
from tracehint.hintgen.anonymize.words import Pseudonyms
from tracehint.hintgen.text.masks import zeroed


def replaced(texts: pa.Array, words: Pseudonyms) -> pa.Array:
    """Distinct binary values with their words replaced, as by `words.replace` one by one.

    Words are met in the order of the texts, so that the same texts give the same words.
    """
    if not len(texts):
        return texts
    encoded = zeroed(texts).dictionary_encode()
    code = ints(encoded.indices.to_numpy())
    layouts = encoded.dictionary.to_pylist()
    fixed = np.array([words.reads_digits(layout) for layout in layouts], bool)[code]
    first = np.full(len(layouts), len(code))
    np.minimum.at(first, code, np.arange(len(code)))
    looked_at = fixed.copy()
    looked_at[first] = True
    made = [words.replace(raw) for raw in texts.filter(pa.array(looked_at)).to_pylist()]
    place = np.cumsum(looked_at) - 1
    row = np.where(fixed, place, place[first[code]])
    return _with_digits(pa.array(made, pa.binary()).take(pa.array(row)), texts, ~fixed)


def _with_digits(models: pa.Array, texts: pa.Array, chosen: Bools) -> pa.Array:
    """The models with the digits of the texts, of which each has as many, in the chosen rows."""
    new = _letters(models).copy()
    old = _letters(texts)
    new[_digits(models, new, chosen)] = old[_digits(texts, old, chosen)]
    ends = models.buffers()[1]
    return pa.Array.from_buffers(
        models.type, len(models), [None, ends, pa.py_buffer(new)], 0, models.offset
    )


def _letters(texts: pa.Array) -> np.ndarray:
    """The bytes of all texts, one after the other, from the first of the buffer on."""
    data = texts.buffers()[2]
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def _digits(texts: pa.Array, data: np.ndarray, chosen: Bools) -> Bools:
    """Which of the bytes are digits of the chosen texts."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    inside = np.zeros(len(data), bool)
    inside[ends[0] : ends[-1]] = np.repeat(chosen, np.diff(ends))
    return inside & (data >= ord("0")) & (data <= ord("9"))
