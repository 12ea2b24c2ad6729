"""The notebook of the docs runs on a fresh recording and reproduces its stored output."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "notebook.py"


def outputs(cell: Any) -> list[str]:
    """Return the texts that a cell printed or returned."""
    return [o.get("text") or o["data"]["text/plain"] for o in cell.outputs]


@pytest.mark.slow
def test_the_notebook_runs_and_its_stable_cells_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("nbclient")
    import nbformat

    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", "")
    spec = importlib.util.spec_from_file_location("notebook", SCRIPT)
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    stored = nbformat.read(script.NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    fresh = script.execute(script.record(tmp_path))
    code = [(a, b) for a, b in zip(stored.cells, fresh.cells, strict=True) if a.cell_type == "code"]
    assert len(code) >= 8
    for old, new in code:
        assert outputs(new), new.source
        if "stable" in old.metadata.get("tags", []):
            assert outputs(new) == outputs(old), new.source
