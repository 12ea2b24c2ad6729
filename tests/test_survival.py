"""Hints that a run removes: which ones, by which program, and where they are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tracehint.adapters.stores.survival import explain_losses, lost_in
from tracehint.cli import main

NAMES = [b"plain", b"deleted", b"over", b"moved"]


def recorded(folder: Path) -> Path:
    """sort writes `plain`, recreates `deleted`, renames over `over`; mv moves `moved`."""
    run = RunBuilder()
    sort = run.process(["/usr/bin/sort"])
    mv = run.process(["/bin/mv"])
    kept = run.file("/data/plain", existed=False)
    run.write(sort, kept, 0, 10, at=1.0)
    old = run.file("/data/deleted", existed=True)
    run.name(old, "unlink", "/data/deleted", proc=sort, at=2.0)
    run.write(sort, run.file("/data/deleted", existed=False), 0, 10, at=3.0)
    temporary = run.file("/data/tmpx", existed=False)
    run.write(sort, temporary, 0, 10, at=4.0)
    run.name(temporary, "rename", "/data/tmpx", "/data/over", proc=sort, at=5.0)
    moved = run.file("/data/moved", existed=True)
    run.name(moved, "rename", "/data/moved", "/data/elsewhere", proc=mv, at=6.0)
    run.manifest.data_roots = ["/data"]
    return run.save(folder / "run.trace")


def test_what_takes_hints_away_is_known_from_the_names(tmp_path: Path) -> None:
    lost = lost_in(recorded(tmp_path), NAMES)
    assert {path: one.why for path, one in lost.items()} == {
        b"deleted": "deleted",
        b"over": "replaced by a rename",
        b"moved": "moved away by a rename",
    }
    assert lost[b"over"].program == "sort" and lost[b"moved"].program == "mv"
    text = "\n".join(explain_losses(lost, 4))
    assert "3 of 4 hinted files cannot keep a hint" in text
    assert "1 file deleted by sort, as deleted" in text
    assert explain_losses({}, 4) == []


def test_verify_and_the_plan_tell_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    (data / "over").write_text("x")
    rules = [rule(n, DP="local", producer="sort", consumers=(), id=n) for n in ("over", "plain")]
    hints = save(tmp_path, *rules)
    command = ["verify", str(hints), "--store", "xattr", str(data), "--run", str(run)]
    assert main(command) == 1
    assert "1 of 2 hinted files cannot keep a hint" in capsys.readouterr().err
    assert main([*command, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["lost"] == [{"path": "over", "why": "replaced by a rename", "program": "sort"}]
    assert main(["emit", str(hints), "--store", "xattr", "--like", str(run)]) == 0
    assert "cannot keep a hint" in capsys.readouterr().err
