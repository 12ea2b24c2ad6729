"""A new store needs only one file; output of doctor and emit for each store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tests.support.store_tools import BLOCK, COPIES, tool_store
from tracehint.adapters.stores.base import VOCABULARY
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.registry import TABLES, names, open_store
from tracehint.errors import TracehintError

TWENTIETH = """
name = "twentieth"
title = "the twentieth store"
[about]
who = "owner"
read_back = "`mytool get`"
undo = "`mytool clear`"
cost = "one program a directory"
source = "mytool(1)"
[commands.place]
set = ["mytool", "set", "{options}", "{path}"]
unset = ["mytool", "clear", "{path}"]
[commands.place.words]
copies = { kind = "count", option = ["--copies={}"] }
[hints.Replication]
attribute = "copies"
acts = ["any"]
"""


def test_a_further_store_is_one_file(tmp_path: Path) -> None:
    """A TOML file in the folder of tables adds a store; no other file refers to it."""
    for table in TABLES.glob("*.toml"):
        (tmp_path / table.name).write_bytes(table.read_bytes())
    before = names(tmp_path)
    (tmp_path / "twentieth.toml").write_text(TWENTIETH)
    assert set(names(tmp_path)) - set(before) == {"twentieth"}
    store = open_store("twentieth", tables=tmp_path)
    assert isinstance(store, CommandStore)
    [setting], _ = store.translate(COPIES, "file")
    assert store.argv(setting, "P") == ["mytool", "set", "--copies=3", "P"]
    assert set(store.capabilities()) == set(VOCABULARY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["mytool", "set"', '["/bin/sh", "-c"'),
        ('["mytool", "set"', '["../mytool", "set"'),
        ('"{options}", "{path}"]\nunset', '"{path}"]\nunset'),
        ('kind = "count"', 'kind = ".*"'),
        ('kind = "count"', "kind = 3"),
        ('option = ["--copies={}"]', 'option = "--copies={}"'),
        ('option = ["--copies={}"]', 'option = ["x"], read = "("'),
        ('option = ["--copies={}"]', 'option = ["x"], read = "x"'),
        ('attribute = "copies"', 'attribute = "other"'),
        ('who = "owner"', "who = 3"),
        ('who = "owner"', 'state = "perfect"'),
        ("[about]", "[fields]\nx = { of = 3 }\n[about]"),
        ("[about]", 'mounted = "no"\n[about]'),
    ],
)
def test_a_wrong_table_of_commands_is_refused(tmp_path: Path, old: str, new: str) -> None:
    assert old in TWENTIETH
    (tmp_path / "t.toml").write_text(TWENTIETH.replace(old, new, 1))
    with pytest.raises(TracehintError) as caught:
        open_store(str(tmp_path / "t.toml"))
    assert caught.value.remedy


def test_the_example_of_a_tool_in_the_reference_page_is_a_table(tmp_path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "reference" / "stores.md"
    text = page.read_text(encoding="utf-8").partition("## A new store that has a tool")[2]
    (tmp_path / "t.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
    store = tool_store(str(tmp_path / "t.toml"))
    [setting], _ = store.translate(BLOCK, "directory")
    assert store.argv(setting, "P") == ["mytool", "set", "--chunk=131072", "P"]


def test_what_takes_nothing_says_what_helps_there(tmp_path: Path) -> None:
    save(tmp_path, rule("out/a.bin", DP="local"))
    done = tracehint("emit", "hints.json", "--store", "nfs", cwd=tmp_path)
    assert done.returncode == 2
    assert "Alternative: staging into node-local scratch" in done.stderr
    assert json.loads((tmp_path / "hints.json").read_text())


@pytest.mark.parametrize("name", ["lustre", "nfs", "moosefs"])
def test_doctor_tells_what_a_store_takes(name: str) -> None:
    done = tracehint("doctor", "--store", name, "--format", "json")
    assert done.returncode == 0, done.stderr
    [record] = json.loads(done.stdout)["stores"]
    about = open_store(name).about
    assert record["state"] == about.state
    assert record["tried"] == about.tried
    assert record["instead"] == about.instead
    assert set(record["hints"]) == set(VOCABULARY)


def test_doctor_tells_of_every_store() -> None:
    done = tracehint("doctor", "--store", "all")
    assert done.returncode == 0
    assert all(f"{name}: " in done.stdout for name in names())
    assert "instead: staging into node-local scratch" in done.stdout
