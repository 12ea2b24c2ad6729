"""SQL that the rules about blocks share: bytes per block and task, and the findings by template.

A rule gives the labels `p` and the ranges `region` (file, task, a, b, more columns) before
BLOCK_SQL's `part`, and a table `shared` (file, k, moved) of the blocks in question.
"""

from __future__ import annotations

from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL

# Block size per file: the hint in force, else the setting.
BLOCK_SQL = """
         block AS (SELECT f.file, coalesce(try_cast(h.value AS BIGINT), $block_size) AS bs
                   FROM p JOIN files f USING (file)
                   LEFT JOIN in_force h ON h.path_text = f.path_text AND h.name = 'BlockSize')"""

# Only the first and the last block of a range can be shared.
PART_SQL = """
         part AS (SELECT region.*, k, least(b, (k + 1) * bs) - greatest(a, k * bs) AS bytes
                  FROM region JOIN block USING (file),
                       unnest(list_distinct([a // bs, (b - 1) // bs])) AS u(k))"""


def by_template(column: str, name: str) -> str:
    """The rest of the query; `column` of file_types counts the tasks, as `name` in the result."""
    return f"""
         per_file AS (SELECT file, count(*) AS blocks, sum(moved) AS moved
                      FROM shared GROUP BY file)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(s.moved) AS network_bytes,
           {CONFIDENCE_SQL}, sum(s.blocks)::BIGINT AS blocks, max(block.bs) AS block_size,
           max(ft.{column}) AS {name}
    FROM per_file s JOIN p USING (file) JOIN files f USING (file)
         JOIN file_types ft USING (file) JOIN block USING (file)
    GROUP BY {GROUP_SQL} HAVING sum(s.moved) >= $min_bytes"""
