"""Findings about placement with seconds, simulated on the cluster of the next run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.hintgen.lint.finding import Finding, rank

if TYPE_CHECKING:
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.simulated import Simulated

Files = tuple[str, str, str]  # template, types of the producers, of the consumers

_FILES = """
    SELECT coalesce(f.template, '') AS template, coalesce(ft.producers, '') AS producers,
           coalesce(ft.consumers, '') AS consumers, list(f.file) AS files
    FROM files f JOIN file_types ft USING (file) GROUP BY ALL"""


def with_simulated(
    findings: Sequence[Finding], context: Context
) -> tuple[list[Finding], Simulated[Files] | None]:
    """The findings with `saves.seconds` where hints would place their files, and what all hints
    would do; the order is the one of `rank`. Raises what `simulate_groups` raises."""
    from tracehint.hintgen.learn.rules import learn
    from tracehint.hintgen.simulated import simulate_groups

    about = [f for f in findings if f.saves.network_bytes or f.saves.waiting_bytes]
    wanted = list(dict.fromkeys(map(_key, about)))
    if context.cluster is None or not wanted:
        return list(findings), None
    files = {
        (row["template"], row["producers"], row["consumers"]): row["files"]
        for row in context.rows(_FILES)
    }
    groups = {key: files[key] for key in wanted if key in files}
    rules = learn([context.analysis])
    found = simulate_groups(context.analysis, context.cluster, rules, groups)
    if found is None:
        return list(findings), None
    told = {id(f): found.by[_key(f)] for f in about if _key(f) in found.by}
    return sorted((_told(f, told.get(id(f))) for f in findings), key=rank), found


def _key(finding: Finding) -> Files:
    return finding.template, finding.producers, finding.consumers


def _told(finding: Finding, saved: tuple[float, float] | None) -> Finding:
    if saved is None:
        return finding
    return dataclasses.replace(finding, saves=dataclasses.replace(finding.saves, seconds=saved))
