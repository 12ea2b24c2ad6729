"""What costs a look at every name or byte is done once per run, however many asked for it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.support.cli import inside
from tests.support.joined import declared
from tracehint.adapters.engines import json_stream
from tracehint.adapters.engines.json_stream import JsonStream
from tracehint.analyzer.model import Options
from tracehint.hintgen.inputs import load_run
from tracehint.hintgen.learn.rules import learn
from tracehint.hintgen.match.templateindex import TemplateIndex
from tracehint.limits import values_of


def test_values_of_a_stream_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short items that lie in the same buffered text do not have it counted again each."""
    seen: list[int] = []

    def noted(text: str) -> int:
        seen.append(len(text))
        return values_of(text)

    monkeypatch.setattr(json_stream, "CHUNK", 1 << 10)
    monkeypatch.setattr(json_stream, "values_of", noted)
    items = [{"id": f"task{n:05d}", "files": [f"f{n}"]} for n in range(5_000)]
    text = json.dumps({"w": items}).encode()
    stream = JsonStream(io.BytesIO(text), frozenset({"w"}), frozenset())
    assert [value for _, value in stream.events()] == items
    assert sum(seen) <= 3 * len(text)


def test_rules_are_tried_without_counting_all_names_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.json").write_text(json.dumps(declared(1)))
    assert inside("import", "run.json", "-o", "run.trace", cwd=tmp_path).returncode == 0
    analysis = load_run(tmp_path / "run.trace", Options()).analysis
    tried: list[bytes] = []
    fitting = TemplateIndex.fitting
    monkeypatch.setattr(
        TemplateIndex,
        "fitting",
        lambda self, subject: (tried.append(subject.name), fitting(self, subject))[1],
    )
    assert learn([analysis]).rules
    assert len(tried) <= analysis.files.num_rows
