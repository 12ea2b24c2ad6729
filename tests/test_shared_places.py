"""Outputs and bundles in directories shared with other users: their links are never followed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tests.support.patience import PATIENCE_S
from tests.support.tagger import build, target
from tests.support.users import OTHER, needs_root
from tracehint.adapters.engines.tag_table import encode, tag_files
from tracehint.adapters.stores.registry import open_store
from tracehint.cli import main
from tracehint.errors import BundleError
from tracehint.schemas.plain import replacing
from tracehint.schemas.store import read_bundle
from tracehint.schemas.writer import BundleWriter


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious")
    path.chmod(0o600)
    return path


def test_a_planted_temporary_name_is_not_written_through(tmp_path: Path, victim: Path) -> None:
    """Outputs are first written beside their place, under a predictable name."""
    hints = save(tmp_path, rule("a", DP="local"))
    out = tmp_path / "out.sh"
    for name in ("out.sh", "out.sh.data"):
        (tmp_path / f".{name}.{os.getpid()}.tmp").symlink_to(victim)
    assert main(["emit", str(hints), "--store", "xattr", "-o", str(out)]) == 0
    assert victim.read_text() == "precious"
    assert victim.stat().st_mode & 0o777 == 0o600
    assert out.stat().st_mode & 0o100


@pytest.mark.slow
def test_force_replaces_a_link_and_not_what_it_leads_to(tmp_path: Path, victim: Path) -> None:
    hints = save(tmp_path, rule("a", DP="local"))
    bundle = _bundle(tmp_path / "run.trace")
    for number, command in enumerate(
        [
            ["emit", str(hints), "--store", "xattr"],
            ["hints", str(bundle)],
            ["export", str(bundle), "--to", "prov"],
            ["export", str(bundle), "--to", "graphml"],
            ["lint", str(bundle)],
            ["report", str(bundle)],
        ]
    ):
        out = tmp_path / f"out{number}"
        out.symlink_to(victim)
        assert main([*command, "-o", str(out), "--force"]) in (0, 1), command
        assert victim.read_text() == "precious", command
        assert not out.is_symlink(), command


def test_replacing_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "x"):
        raise ZeroDivisionError
    with replacing(tmp_path / "y") as fd:
        os.write(fd, b"text")
    assert [p.name for p in tmp_path.iterdir()] == ["y"]


@needs_root
@pytest.mark.parametrize("what", ["empty", "bundle"])
def test_a_directory_of_another_user_becomes_no_bundle(tmp_path: Path, what: str) -> None:
    """Its owner could place links at the names of the files that are written."""
    folder = tmp_path / "run.trace"
    folder.mkdir()
    if what == "bundle":
        _bundle(folder)
    os.chown(folder, OTHER, OTHER)
    with pytest.raises(BundleError, match="another user"):
        BundleWriter(folder, force=True)
    run = _bundle(tmp_path / "mine.trace")
    for command in (["anonymize", str(run)], ["merge", str(run), str(run)]):
        assert main([*command, "-o", str(folder), "--force"]) == 2


def test_pipes_in_a_bundle_of_somebody_else_hold_nobody(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path / "run.trace")
    part = next((bundle / "processes").iterdir())
    os.mkfifo(part / "1.parquet")
    assert len(read_bundle(bundle).tables["processes"]) == 1
    (bundle / "manifest.json").unlink()
    os.mkfifo(bundle / "manifest.json")
    with pytest.raises(BundleError, match="not a regular file"):
        read_bundle(bundle)


@pytest.mark.slow
def test_a_pipe_as_table_of_tags_does_not_hold_the_task(tmp_path: Path) -> None:
    table, _, _ = encode([[target("o")]], open_store("xattr"))
    folder = tmp_path / "x.tracehint"
    folder.mkdir()
    for path, data in tag_files(folder, table).items():
        assert path is not None
        path.write_bytes(data)
    (folder / "table").unlink()
    os.mkfifo(folder / "table")
    build(tmp_path).rename(folder / "helper")
    command = "TRACEHINT_RULE=0 TRACEHINT_DIR=./x.tracehint; . ./x.tracehint/tag; exit 7"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=PATIENCE_S).returncode == 7


@needs_root
@pytest.mark.parametrize("what", ["link", "directory of another user"])
def test_programs_for_the_workflow_go_into_no_planted_folder(tmp_path: Path, what: str) -> None:
    """As in /tmp, where others can create `out.mf.tracehint` first."""
    hints = save(tmp_path, rule("a", DP="local"))
    workflow = tmp_path / "wf.mf"
    workflow.write_text("a:\n\techo x > a\n")
    planted = tmp_path / "out.mf.tracehint"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if what == "link":
        planted.symlink_to(elsewhere)
    else:
        planted.mkdir()
        os.chown(planted, OTHER, OTHER)
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(workflow), "--force"]
    assert main([*command, "-o", str(tmp_path / "out.mf")]) == 2
    assert not (planted / "tag").exists()


def _bundle(path: Path) -> Path:
    run = RunBuilder(cwd="/data", data_roots=["/data"])
    task = run.process(["sh", "x"], start=0, end=1)
    run.write(task, run.file("/data/o", existed=False, size=9), 0, 9, at=0.5)
    return run.save(path)
