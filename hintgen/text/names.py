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

from tracehint.analyzer.arrays import Bools, Ints, ints, lookup, numbered, order_by
from tracehint.analyzer.columns import column
from tracehint.hintgen.text.digit_runs import DigitRuns
from tracehint.hintgen.text.masks import layouts_of, shown

if TYPE_CHECKING:
    import duckdb

_ALIKE = """
    CREATE TEMP TABLE alike AS
    WITH l AS (SELECT file, min(pattern) AS pattern FROM patterns
               WHERE edge IS NULL AND "primary" GROUP BY file),
         each_ AS (SELECT f.file, f.mask_number, f.role, s.made, s.used, l.pattern
                   FROM files_raw f LEFT JOIN type_set s USING (file) LEFT JOIN l USING (file)),
         flows AS (SELECT role, made, used, pattern, row_number() OVER () AS flow
                   FROM (SELECT DISTINCT role, made, used, pattern FROM each_))
    SELECT file, flow, flow * (SELECT max(mask_number) + 1 FROM files_raw) + mask_number AS kind
    FROM each_ e JOIN flows f ON e.role IS NOT DISTINCT FROM f.role
         AND e.made IS NOT DISTINCT FROM f.made AND e.used IS NOT DISTINCT FROM f.used
         AND e.pattern IS NOT DISTINCT FROM f.pattern"""
# Files without digits that are used alike share one template: `{a,b,c}.bin`.
_DIR = "CASE path_text WHEN '/' THEN '' ELSE parse_dirpath(path_text, 'forward_slash') END"
_LONE = f"""
    WITH single AS (SELECT shape FROM files_raw WHERE role <> 'software' GROUP BY shape
                    HAVING count(DISTINCT named) = 1),
         named AS (SELECT f.shape, {_DIR} AS dir, a.flow,
                          regexp_extract(f.path_text, '(\\.[^./]*)?$') AS ending,
                          regexp_extract(f.path_text, '([^/]*?)(\\.[^./]*)?$', 1) AS stem
                   FROM files_raw f JOIN single USING (shape) JOIN alike a USING (file)),
         shared AS (SELECT dir, ending, list(DISTINCT shape) AS members,
                           list_sort(list(DISTINCT stem)) AS stems
                    FROM named GROUP BY dir, ending, flow HAVING count(DISTINCT shape) >= 3),
         each_ AS (SELECT unnest(members) AS shape,
           CASE WHEN dir = '' THEN '' ELSE dir || '/' END || '{{'
           || array_to_string(stems[1:3], ',')
           || CASE WHEN len(stems) > 3 THEN ',+' || (len(stems) - 3) ELSE '' END
           || '}}' || ending AS text FROM shared)
    SELECT shape, min(text) AS text FROM each_ GROUP BY shape"""
_FILES = f"""
    CREATE TABLE files AS
    SELECT * EXCLUDE (template), role <> 'software' AS data, {_DIR} AS dir, template
    FROM files_raw"""
_PLAIN = "CREATE TABLE files AS SELECT *, role <> 'software' AS data FROM files_raw"


def add_templates(con: duckdb.DuckDBPyConnection, files: pa.Table) -> None:
    """Make `files` of the table: adds mask, data, dir and template (see query.py). It has
    path_text."""
    texts = files["path_text"]
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    layouts = layouts_of(texts)
    masks = shown(layouts.shapes).cast(pa.string()).dictionary_encode("encode")
    number = masks.indices.take(layouts.code)
    files = files.append_column("mask", masks.dictionary.take(number))
    con.register("files_raw", files.append_column("mask_number", number))
    con.execute(_ALIKE)
    con.unregister("files_raw")
    kind = _kinds(con, column(files, "file"))
    plain = _plain(layouts.known, masks).to_numpy(zero_copy_only=False)[layouts.code.to_numpy()]
    templates = _templates(texts, masks, ints(number.to_numpy()), kind, plain)
    templates = _with_lone_names(con, files, templates)
    files = files.append_column("shape", templates.indices)
    templates = templates.dictionary.take(templates.indices)
    con.register("files_raw", files.append_column("template", templates))
    con.execute(_FILES)
    con.unregister("files_raw")
    con.execute("DROP TABLE alike")


def add_plain(con: duckdb.DuckDBPyConnection, files: pa.Table) -> None:
    """Make `files` of the table without dir, mask, template and shape, for those who need none."""
    con.register("files_raw", files)
    con.execute(_PLAIN)
    con.unregister("files_raw")


def _kinds(con: duckdb.DuckDBPyConnection, file: Ints) -> Ints:
    """The kind of each file: what is alike has the same."""
    found = con.execute("SELECT file, kind FROM alike").fetchnumpy()
    of, kind = ints(found["file"]), ints(found["kind"])
    order = order_by(of)
    return lookup(of[order], kind[order], file)


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
    con: duckdb.DuckDBPyConnection, files: pa.Table, templates: pa.DictionaryArray
) -> pa.DictionaryArray:
    """The templates, of which those of lone names share one. A path with several versions can be
    alike with several groups: it takes the first."""
    con.register("files_raw", files.append_column("shape", templates.indices))
    shared = dict(con.execute(_LONE).fetchall())
    con.unregister("files_raw")
    known = templates.dictionary.to_pylist()
    return _coded([shared.get(n, text) for n, text in enumerate(known)], templates.indices)


def _coded(texts: list[str | None], at: pa.Array) -> pa.DictionaryArray:
    """The text at each place, equal ones with one number."""
    encoded = pa.array(texts, pa.string()).dictionary_encode("encode")
    return pa.DictionaryArray.from_arrays(encoded.indices.take(at), encoded.dictionary)


def _fill(mask: str, parts: Iterable[str]) -> str:
    pieces = mask.split("*")
    return pieces[0] + "".join(p + rest for p, rest in zip(parts, pieces[1:], strict=True))
