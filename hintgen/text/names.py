"""Templates of file names: what changes from file to file becomes a star.

A template is for people. It is made per group of files that are *alike*: same
mask (masks.py), role, primary label, and the same types of producers and consumers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

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
# A position of the mask whose text is the same in every file keeps its text. Where random
# parts were masked, the runs of digits do not line up with the stars: those keep the mask.
_PARTS = """
    WITH fit AS (SELECT kind, mask, regexp_extract_all(path_text, '[0-9]+') AS run
                 FROM files JOIN alike USING (file)
                 WHERE contains(mask, '*')
                   AND regexp_replace(path_text, '[0-9]+', '*', 'g') = mask),
         flat AS (SELECT kind, mask, unnest(run) AS part,
                         generate_subscripts(run, 1) AS position FROM fit
                  WHERE len(run) = len(mask) - len(replace(mask, '*', ''))),
         kept AS (SELECT kind, any_value(mask) AS mask, position,
                         CASE WHEN min(part) = max(part) THEN min(part) ELSE '*' END AS part
                  FROM flat GROUP BY kind, position)
    SELECT kind, any_value(mask), list(part ORDER BY position) FROM kept GROUP BY kind"""
# Files without digits that are used alike share one template: `{a,b,c}.bin`.
_LONE = """
    CREATE TEMP TABLE lone AS
    WITH single AS (SELECT template FROM files WHERE data GROUP BY template
                    HAVING count(DISTINCT path) = 1),
         named AS (SELECT f.template, f.dir, a.flow,
                          regexp_extract(f.path_text, '(\\.[^./]*)?$') AS ending,
                          regexp_extract(f.path_text, '([^/]*?)(\\.[^./]*)?$', 1) AS stem
                   FROM files f JOIN single USING (template) JOIN alike a USING (file)),
         shared AS (SELECT dir, ending, list(DISTINCT template) AS members,
                           list_sort(list(DISTINCT stem)) AS stems
                    FROM named GROUP BY dir, ending, flow HAVING count(DISTINCT template) >= 3)
    SELECT unnest(members) AS template,
           CASE WHEN dir = '' THEN '' ELSE dir || '/' END || '{'
           || array_to_string(stems[1:3], ',')
           || CASE WHEN len(stems) > 3 THEN ',+' || (len(stems) - 3) ELSE '' END
           || '}' || ending AS shared
    FROM shared"""


def add_templates(con: duckdb.DuckDBPyConnection) -> None:
    """Make `files` of `files_raw`: adds data, dir and template (see query.py)."""
    con.execute(
        """CREATE TABLE files AS
            SELECT * EXCLUDE (mask_number), role <> 'software' AS data,
                   regexp_extract(path_text, '^(.*)/[^/]*$', 1) AS dir
            FROM files_raw"""
    )
    con.execute("ALTER TABLE files ADD COLUMN template VARCHAR")
    con.execute("UPDATE files SET template = mask")
    con.execute(_ALIKE)
    _keep_constant_digits(con)
    _share_lone_names(con)
    con.execute("DROP TABLE alike")


def _keep_constant_digits(con: duckdb.DuckDBPyConnection) -> None:
    import pyarrow as pa

    found = con.execute(_PARTS).fetchall()
    if not found:
        return
    con.register(
        "incoming",
        pa.table(
            {
                "kind": [kind for kind, _, _ in found],
                "template": [_fill(mask, parts) for _, mask, parts in found],
            }
        ),
    )
    con.execute(
        """UPDATE files SET template = i.template
           FROM incoming i JOIN alike a USING (kind) WHERE files.file = a.file"""
    )
    con.unregister("incoming")


def _share_lone_names(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(_LONE)
    # A path with several versions can be alike with several groups: it takes the first.
    con.execute(
        """UPDATE files SET template = l.shared
           FROM (SELECT template, min(shared) AS shared FROM lone GROUP BY template) l
           WHERE files.template = l.template"""
    )
    con.execute("DROP TABLE lone")


def _fill(mask: str, parts: Iterable[str]) -> str:
    pieces = mask.split("*")
    return pieces[0] + "".join(p + rest for p, rest in zip(parts, pieces[1:], strict=True))
