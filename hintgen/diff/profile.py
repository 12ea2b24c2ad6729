"""A run reduced to what two runs of one workflow have in common.

Tasks are known by their type, files by their mask (masks.py: digits and random
parts as `*`) and by which types of tasks write and read them. One row per
stage and per group of files, so the size follows the workflow, not the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query
from tracehint.hintgen.text.masks import masks_of

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


@dataclass(frozen=True)
class StageProfile:
    """Tasks of one type."""

    type: str
    tasks: int
    failed: int


@dataclass(frozen=True)
class FileProfile:
    """Files of one mask with the same writing and reading task types."""

    mask: str
    role: str
    made: tuple[str, ...]
    used: tuple[str, ...]
    files: int
    size_bytes: int
    read_bytes: int
    pattern: str  # of most of the files
    template: str
    examples: tuple[bytes, ...]

    @property
    def ending(self) -> str:
        """`.fits` of `p_*.fits`."""
        name = self.mask.rsplit("/", 1)[-1]
        return name[name.rfind(".") :] if "." in name else ""


@dataclass(frozen=True)
class Profile:
    """The two tables of a run."""

    stages: dict[str, StageProfile]
    groups: tuple[FileProfile, ...]


_STAGES = """
    SELECT kind AS type, count(*) AS tasks, count(*) FILTER (exit_status <> 0) AS failed
    FROM work JOIN kinds USING (task) WHERE attempt = 1 GROUP BY 1 ORDER BY 1"""
_GROUPS = """
    WITH p AS (SELECT file, list_sort(list(DISTINCT kind)) AS made
               FROM writers JOIN kinds USING (task) GROUP BY file),
         c AS (SELECT file, list_sort(list(DISTINCT kind)) AS used,
                      sum(unique_bytes)::BIGINT AS read_bytes
               FROM readers JOIN kinds USING (task) GROUP BY file),
         l AS (SELECT file, min(pattern) AS pattern FROM patterns
               WHERE edge IS NULL AND "primary" GROUP BY file),
         one AS (SELECT any_value(f.path) AS path, f.mask, any_value(f.template) AS template,
                        arg_max(f.role, f.version) AS role, max(f.size_bytes) AS size_bytes,
                        list_sort(list_distinct(flatten(list(coalesce(p.made, []))))) AS made,
                        list_sort(list_distinct(flatten(list(coalesce(c.used, []))))) AS used,
                        sum(c.read_bytes)::BIGINT AS read_bytes,
                        mode(l.pattern ORDER BY l.pattern) AS pattern
                 FROM files f LEFT JOIN p USING (file) LEFT JOIN c USING (file)
                      LEFT JOIN l USING (file)
                 WHERE f.role IN ('input', 'intermediate', 'output')
                   AND (p.file IS NOT NULL OR c.file IS NOT NULL)
                 GROUP BY f.named, f.mask)
    SELECT mask, role, made, used, count(*) AS files,
           coalesce(sum(size_bytes), 0)::BIGINT AS size_bytes,
           coalesce(sum(read_bytes), 0)::BIGINT AS read_bytes,
           coalesce(mode(pattern ORDER BY pattern), '') AS pattern, min(template) AS template,
           min(path, 5) AS examples
    FROM one GROUP BY mask, role, made, used ORDER BY mask, role, made, used"""


def profile(analysis: Analysis) -> Profile:
    """The profile of a run; first attempts count, engines do not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = masks_of(pc.fill_null(analysis.tasks.column("type"), "")).dictionary_encode()
    known = types.dictionary
    words = sorted(known.to_pylist())  # a kind is a place in them, so that kinds sort as they do
    kinds = pc.index_in(known, pa.array(words, pa.string())).take(types.indices)
    with query.connect(analysis) as con:
        con.register("kinds", pa.table({"task": analysis.tasks.column("task"), "kind": kinds}))
        stages = [StageProfile(words[r.pop("type")], **r) for r in query.rows(con, _STAGES)]
        groups = [_group(row, words) for row in query.rows(con, _GROUPS)]
    return Profile({s.type: s for s in stages}, tuple(groups))


def _group(row: dict[str, Any], words: list[str]) -> FileProfile:
    for name in ("made", "used"):
        row[name] = tuple(words[kind] for kind in row[name])
    row["examples"] = tuple(bytes(p) for p in row["examples"])
    return FileProfile(**row)
