"""SQL that the rules about missing placement hints share."""

from __future__ import annotations

from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL, SAVES_SQL


def unhinted(pattern: str, hint: str, *columns: str) -> str:
    """Files with the primary label, for which a placement pays and no such hint was in force.

    `hint` is a condition on in_force (name, value); `columns` are further ones of the result.
    """
    more = "".join(f", {column}" for column in columns)
    # A declared reader that read nothing makes an edge, but no traffic.
    return f"""
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {SAVES_SQL}, {CONFIDENCE_SQL}{more}
        FROM primary_label p JOIN files f USING (file) JOIN file_types ft USING (file)
        WHERE p.pattern = '{pattern}' AND f.data AND ft.n_consumers > 0
          AND coalesce(p.placement, '') <> 'default'
          AND greatest(p.saves_bytes, p.saves_wait_bytes) > 0
          AND f.path_text NOT IN (SELECT path_text FROM in_force WHERE {hint})
        GROUP BY {GROUP_SQL}
        HAVING greatest(sum(p.saves_bytes), sum(p.saves_wait_bytes)) >= $min_bytes"""
