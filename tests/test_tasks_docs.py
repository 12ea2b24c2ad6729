"""The reference page names every engine and every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracehint.adapters.engines.graphs import READERS, load
from tracehint.analyzer.tasks.engines.registry import ENGINES

PAGE = (Path(__file__).parent.parent / "docs/reference/tasks.md").read_text()


@pytest.mark.parametrize("engine", [e.name for e in ENGINES if e.name not in ("plumbing", "shell")])
def test_each_engine_is_described(engine: str) -> None:
    assert f"\n| {engine} " in PAGE


@pytest.mark.parametrize("engine", list(READERS))
def test_each_reader_is_described_and_exists(engine: str) -> None:
    assert f"\n| {engine} | {READERS[engine].reads} |\n" in PAGE
    assert callable(load(engine).sniff) and callable(load(engine).read)
