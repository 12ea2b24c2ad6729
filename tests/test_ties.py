"""Where two patterns are as frequent, the same one is named whatever the order of the rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tests.support.cli import inside
from tests.support.joined import declared
from tracehint.analyzer.model import PATTERNS, Analysis, Options
from tracehint.hintgen import query
from tracehint.hintgen.diff.profile import profile
from tracehint.hintgen.draw.build import build
from tracehint.hintgen.draw.report.flow import sankey
from tracehint.hintgen.inputs import load_run


def backwards(table: pa.Table) -> pa.Table:
    return table.take(pa.array(range(table.num_rows - 1, -1, -1)))


def half_and_half(analysis: Analysis) -> Analysis:
    """Every other file has another pattern."""
    files = analysis.patterns.column("file").to_pylist()
    words = pa.array(["reduce" if file % 2 else "distribute" for file in files])
    table = analysis.patterns.set_column(
        PATTERNS.get_field_index("pattern"), PATTERNS.field("pattern"),
        words.cast(PATTERNS.field("pattern").type),
    )  # fmt: skip  # a table
    return replace(analysis, patterns=table)


def test_ties(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(declared(1)))
    assert inside("import", "run.json", "-o", "run.trace", cwd=tmp_path).returncode == 0
    first = half_and_half(load_run(tmp_path / "run.trace", Options()).analysis)
    second = replace(first, **{name: backwards(t) for name, t in first.tables().items()})
    assert profile(first).groups == profile(second).groups
    assert build(first, fold=True) == build(second, fold=True)
    assert sankey(query.connect(first)) == sankey(query.connect(second))
