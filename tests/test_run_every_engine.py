"""`tracehint run -- CMD` repeated without options, for every engine, on MooseFS.

No project file: the store is found by its mount, the classes by their names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import shaped
from tests.support.bed import Node, ok
from tests.support.cli import TRACEHINT
from tests.test_created_engines import ENGINES, Row, prepared
from tracehint.adapters.project.discover import map_from_names, single_classes
from tracehint.adapters.project.state import read_state

PROGRAM = TRACEHINT
LINES = 150_000  # input size: 2 MB
DATASET = Path(__file__).parents[1] / "datasets" / "montage"
LISTING = """\
1 : 1 ; admin_only: NO ; mode: STD ; create_labels: [*] ; keep_labels: [*]
2 : 2 ; admin_only: NO ; mode: STD ; create_labels: [*] , [*] ; keep_labels: [*] , [*]
node_a1 : 1 ; admin_only: NO ; mode: LOOSE ; create_labels: [A] ; keep_labels: [A]
node_b2 : 1 ; admin_only: NO ; mode: LOOSE ; create_labels: [B] ; keep_labels: [B]
both : 2 ; admin_only: NO ; mode: STD ; create_labels: [A] , [B] ; keep_labels: [A] , [B]
ssd : 1 ; admin_only: NO ; mode: STD ; create_labels: [S] ; keep_labels: [S]
"""


@pytest.mark.parametrize(
    ("host", "local"),
    [("a1", "node_{host}"), ("b2", "node_{host}"), ("c3", None), ("ssd", None), ("", None)],
)
def test_classes_are_known_by_their_names(host: str, local: str | None) -> None:
    text = map_from_names(single_classes(LISTING), [host])
    assert (f'local = "{local}"' in text) == (local is not None)
    assert ('groups = ["node_a1", "node_b2"]' in text) == (local is not None)
    assert map_from_names(single_classes(""), ["a1"]) == ""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of a running MooseFS."""
    if shaped.missing():
        pytest.skip(shaped.missing())
    with shaped.shaped_cluster(tmp_path_factory.mktemp("bed")) as bed:
        yield bed.nodes[0]


def run(node: Node, folder: Path, *command: str, env: dict[str, str] | None = None) -> str:
    """Run `tracehint run -- COMMAND` on the node and return standard error."""
    words = node.command(*PROGRAM, "run", "--", *command)
    done = subprocess.run(
        list(map(os.fspath, words)), cwd=folder, env=env, capture_output=True, text=True,
        timeout=1500,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def compared(node: Node, folder: Path, after: int) -> dict[str, Any]:
    """Return `compare` of the first and a later run."""
    runs = folder / ".tracehint" / "runs"
    words = ("compare", runs / "0001.trace", runs / f"{after:04}.trace", "--format", "json")
    found: dict[str, Any] = json.loads(ok(node.run(*PROGRAM, *words, cwd=folder)))
    return found


def afresh(folder: Path, row: Row) -> tuple[list[str], dict[str, str]]:
    """Reset the workflow to its state before the first run, but keep tracehint's records of it."""
    known, kept = folder / ".tracehint", folder.with_name(f"{folder.name}.kept")
    if known.exists():
        shutil.move(known, kept)
    command, env = prepared(folder, row)
    (folder / "in").write_text("".join(f"line {i:08}\n" for i in range(LINES)))
    if kept.exists():
        shutil.move(kept, known)
    return command, env


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.full
@pytest.mark.store
@pytest.mark.engine
def test_each_run_knows_more(name: str, node: Node) -> None:
    row, folder = ENGINES[name], node.mount / "".join(filter(str.isalnum, name))
    said = []
    for _ in range(3):
        command, env = afresh(folder, row)
        said.append(run(node, folder, *command, env=env))
    assert "store moosefs: " in said[0] and "a storage class for each node" in said[0]
    assert "the next run applies them" in said[0]
    assert "planned for moosefs" in said[1] and "hints from 1 run " in said[1], said[1]
    assert "hints from 2 runs" in said[2], said[2]
    state = read_state(folder)
    assert [r.hinted for r in state.runs] == [False, True, True]
    for number in (2, 3):
        hints = compared(node, folder, number)["hints"]
        assert hints["in_force"] == hints["wanted"] > 0, hints
    ok(node.run(*PROGRAM, "status", "--forget", cwd=folder))
    assert not (folder / ".tracehint").exists()


@pytest.mark.full
@pytest.mark.store
@pytest.mark.engine
def test_montage_twice(node: Node) -> None:
    """The second run of Montage is planned and reads from its own node."""
    if not shutil.which("mProject") or not shutil.which("makeflow"):
        pytest.skip("not installed: montage, makeflow")
    pytest.importorskip("astropy")
    folder = node.mount / "montage"
    makes = [sys.executable, os.fspath(DATASET / "make_workflow.py"), os.fspath(folder)]
    tiles = [sys.executable, os.fspath(DATASET / "make_tiles.py"), os.fspath(folder / "archive")]
    subprocess.run(tiles, check=True)
    received, results = [], []
    for number in (1, 2):
        subprocess.run(makes, check=True)
        before = node.received()
        said = run(node, folder, "makeflow", "-T", "local", "-j", "2", "montage.makeflow")
        received.append(node.received() - before)
        assert ("planned for moosefs" in said) == (number == 2), said
        results.append((folder / "mosaic.fits").read_bytes())
        for path in (p for p in folder.rglob("*") if ".tracehint" not in p.parts):
            if path.is_file() and "archive" not in path.parts:
                path.unlink()
    data = compared(node, folder, 2)
    print("MONTAGE", json.dumps({"received": received, **data}))
    assert results[0] == results[1]
    assert data["hints"]["in_force"] == data["hints"]["wanted"] > 100
    assert data["remote_bytes"]["after"] < 0.5 * data["remote_bytes"]["before"]
    assert received[1] < 0.5 * received[0]
