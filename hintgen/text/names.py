"""Templates of file names: what changes from file to file becomes a star.

A template is for people. It is made per group of files that are *alike*: same
mask (masks.py), role, primary label, and the same types of producers and consumers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, ints, numbered
from tracehint.analyzer.columns import column
from tracehint.hintgen.text.digit_runs import DigitRuns
from tracehint.hintgen.text.masks import layouts_of, shown

if TYPE_CHECKING:
    import duckdb

# Files without digits that are used alike share one template: `{a,b,c}.bin`.
DIR = "CASE path_text WHEN '/' THEN '' ELSE parse_dirpath(path_text, 'forward_slash') END"
# `lone`: files whose shape no other name has.
_LONE = f"""
    WITH named AS (SELECT shape, flow, {DIR} AS dir,
                          regexp_extract(path_text, '(\\.[^./]*)?$') AS ending,
                          regexp_extract(path_text, '([^/]*?)(\\.[^./]*)?$', 1) AS stem
                   FROM lone),
         shared AS (SELECT dir, ending, list(DISTINCT shape) AS members,
                           list_sort(list(DISTINCT stem)) AS stems
                    FROM named GROUP BY dir, ending, flow HAVING count(DISTINCT shape) >= 3),
         each_ AS (SELECT unnest(members) AS shape,
           CASE WHEN dir = '' THEN '' ELSE dir || '/' END || '{{'
           || array_to_string(stems[1:3], ',')
           || CASE WHEN len(stems) > 3 THEN ',+' || (len(stems) - 3) ELSE '' END
           || '}}' || ending AS text FROM shared)
    SELECT shape, min(text) AS text FROM each_ GROUP BY shape"""


def with_templates(con: duckdb.DuckDBPyConnection, files: pa.Table, flow: Ints) -> pa.Table:
    """The files with mask, template and shape (see query.py), the texts as numbers of the
    different ones. They have path_text, named and data. `flow`: the same for files that are alike
    in all but their mask."""
    texts = files["path_text"].combine_chunks()
    layouts = layouts_of(texts)
    masks = shown(layouts.shapes).cast(pa.string()).dictionary_encode("encode")
    number = masks.indices.take(layouts.code)
    kind = flow * len(masks.dictionary) + ints(number.to_numpy())
    plain = _plain(layouts.known, masks).to_numpy(zero_copy_only=False)[layouts.code.to_numpy()]
    templates = _templates(texts, masks, ints(number.to_numpy()), kind, plain)
    templates = _with_lone_names(con, files, templates, flow)
    for name, values in (
        ("mask", pa.DictionaryArray.from_arrays(number, masks.dictionary)),
        ("shape", templates.indices),
        ("template", templates),
    ):
        files = files.append_column(name, values)
    return files


def _plain(layouts: pa.Array, masks: pa.DictionaryArray) -> pa.Array:
    """Whether the stars of a layout's mask are its runs of digits."""
    only_digits = pc.replace_substring_regex(layouts, pattern="[0-9]+", replacement="*")
    return pc.fill_null(pc.equal(only_digits, masks.dictionary_decode().cast(pa.binary())), False)


def _templates(
    texts: pa.Array, masks: pa.DictionaryArray, number: Ints, kind: Ints, plain: Bools
) -> pa.DictionaryArray:
    """The template of each file: a position of the mask whose text is the same in every file of a
    kind keeps its text.

    Where random parts were masked, the runs of digits do not line up with the stars: those keep
    the mask. `number`: the mask of each file. `plain`: files that line up.
    """
    known = masks.dictionary.to_pylist()
    stars = np.array([0 if mask is None else mask.count("*") for mask in known], np.int64)
    runs = DigitRuns(pc.fill_null(texts, ""))
    rows = np.flatnonzero(plain & (stars[number] > 0) & (runs.count == stars[number]))
    kinds, at = numbered(kind)
    mask = np.zeros(len(kinds), np.int64)
    mask[at] = number  # of all files of a kind
    mask_of = dict(zip(kinds.tolist(), mask.tolist(), strict=True))
    found = {
        key: _fill(known[mask_of[key]], parts) for key, parts in runs.constant(rows, kind[rows])
    }
    told = [found.get(key, known[mask_of[key]]) for key in kinds.tolist()]
    return _coded(told, pa.array(at))


def _with_lone_names(
    con: duckdb.DuckDBPyConnection, files: pa.Table, templates: pa.DictionaryArray, flow: Ints
) -> pa.DictionaryArray:
    """The templates, of which those of lone names share one. A path with several versions can be
    alike with several groups: it takes the first."""
    shape = templates.indices.to_numpy()
    named = column(files, "named")
    data = column(files, "data", 0) != 0
    one = np.full(len(templates.dictionary), -1, np.int64)
    one[shape[data]] = named[data]
    alone = one >= 0
    alone[shape[data][named[data] != one[shape[data]]]] = False
    rows = np.flatnonzero(alone[shape])
    lone = {"shape": shape[rows], "flow": flow[rows], "path_text": files["path_text"].take(rows)}
    con.register("lone", pa.table(lone))
    shared = dict(con.execute(_LONE).fetchall())
    con.unregister("lone")
    known = templates.dictionary.to_pylist()
    return _coded([shared.get(n, text) for n, text in enumerate(known)], templates.indices)


def _coded(texts: list[str | None], at: pa.Array) -> pa.DictionaryArray:
    """The text at each place, equal ones with one number."""
    encoded = pa.array(texts, pa.string()).dictionary_encode("encode")
    return pa.DictionaryArray.from_arrays(encoded.indices.take(at), encoded.dictionary)


def _fill(mask: str, parts: Iterable[str]) -> str:
    pieces = mask.split("*")
    return pieces[0] + "".join(p + rest for p, rest in zip(parts, pieces[1:], strict=True))
