"""Stores that read one document: Storage Scale, SeaweedFS, Hercules, TaskVine, JuiceFS. Not run."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.support.cli import tracehint
from tests.support.hints import hint_file, literal, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.plan import TagPlan, Target
from tracehint.adapters.stores.base import Document
from tracehint.adapters.stores.document_stores import DocumentStore
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.registry import ADAPTERS, names, open_store
from tracehint.adapters.stores.scale import check_policy, storage_scale
from tracehint.adapters.stores.seaweedfs import check_rules, seaweedfs
from tracehint.errors import InputError, TracehintError, UsageError
from tracehint.hintgen.hints.model import Rule

SITE = Places(groups=("n1",), base="/wf", pool="data", port=8080)
LOCAL, GROUP, COPIES = {"DP": "local"}, {"DP": "collocation|sum"}, {"Replication": "3"}
SCATTER = {"DP": "scatter|3", "BlockSize": "1048576"}


def _store(name: str) -> DocumentStore:
    store = ADAPTERS[name](SITE)
    assert isinstance(store, DocumentStore)
    return replace(store, alive=lambda host, port: True) if name == "seaweedfs" else store  # type: ignore[call-arg]


def _made(
    store: DocumentStore, rules: list[Rule], *files: tuple[str, Mapping[str, str]]
) -> Document:
    targets = [
        Target(path=path.encode(), kind="file", hints=hints, rule=one.id, pattern="p")
        for one, (path, hints) in zip(rules, files, strict=True)
    ]
    return store.document(hint_file(*rules), TagPlan(targets=targets))


def _one(name: str, hints: Mapping[str, str], template: str = "out/a.bin") -> str:
    made = _made(_store(name), [rule(template, DP="local")], ("out/a.bin", hints))
    return made.text.decode()


# (store, hints) -> text that the document must contain; None: not supported by the store
SAYS: list[tuple[str, Mapping[str, str], str | None]] = [
    ("storage-scale", GROUP, "SET POOL 'n1' WHERE NAME LIKE 'a.bin' ESCAPE '\\'"),
    ("storage-scale", {"Replication": "9"}, "SET POOL 'data' REPLICATE(3) WHERE NAME LIKE 'a.bin'"),
    ("storage-scale", LOCAL, None),
    ("storage-scale", SCATTER, None),
    ("seaweedfs", GROUP, "fs.configure -locationPrefix=/wf/out/a.bin -dataNode=n1:8080 -apply"),
    ("seaweedfs", COPIES, "fs.configure -locationPrefix=/wf/out/a.bin -replication=002 -apply"),
    ("seaweedfs", LOCAL, None),
    ("hercules", LOCAL, '"make": {\n   "POLICY": "LOCAL"'),
    ("hercules", SCATTER, '"POLICY": "RR",\n   "BLOCK_SIZE": "3072"'),
    ("hercules", {"Replication": "9"}, '"REPL_FACTOR": "3"'),
    ("hercules", {"BlockSize": "100000"}, '"BLOCK_SIZE": "98"'),
    ("hercules", GROUP, None),
    ("taskvine", LOCAL, '"declare": "declare_temp"'),
    ("taskvine", COPIES, '"cache": "workflow",\n   "peer_transfer": "true",\n   "replicas": "3"'),
    ("taskvine", GROUP, None),
    ("juicefs", COPIES, "/wf/out/a.bin\n"),
    ("juicefs", LOCAL, None),
    ("juicefs", {"Lifetime": "temporary|x"}, None),
]


@pytest.mark.parametrize(("name", "hints", "wanted"), SAYS)
def test_a_row_is_said_by_this_line(
    name: str, hints: Mapping[str, str], wanted: str | None
) -> None:
    if wanted is None:
        with pytest.raises(UsageError) as caught:
            _one(name, hints)
        assert "supports none of their hints" in str(caught.value)
        return
    assert wanted in _one(name, hints)


def test_every_row_that_a_document_says_stands_above() -> None:
    for name in names():
        if not isinstance(open_store(name), DocumentStore):
            continue
        rows = {k for k, row in open_store(name).capabilities().items() if row.level != "none"}
        seen = {
            f"DP={v.partition('|')[0]}" if k == "DP" else k
            for store, hints, wanted in SAYS
            if store == name and wanted
            for k, v in hints.items()
        }
        assert rows <= seen, (name, rows - seen)


def test_write_back_is_refused_with_the_reason() -> None:
    _, gaps = _store("juicefs").translate(LOCAL, "file")
    assert "a reader on another node gets nothing until the upload" in gaps[0].reason


def test_a_policy_goes_by_names_and_always_ends_with_its_default() -> None:
    rules = [rule("out/part_{n}.bin", DP="local"), rule("out/sum.bin", DP="local")]
    made = _made(_store("storage-scale"), rules, ("out/part_7.bin", COPIES), ("out/sum.bin", GROUP))
    lines = made.text.decode().splitlines()
    assert lines[-3:] == [
        "RULE 'th1' SET POOL 'n1' WHERE NAME LIKE 'sum.bin' ESCAPE '\\'",
        "RULE 'th2' SET POOL 'data' REPLICATE(3) WHERE NAME LIKE 'part\\_%.bin' ESCAPE '\\'",
        "RULE 'default' SET POOL 'data'",
    ]
    assert "not run" in lines[1]
    with pytest.raises(UsageError, match="DEFAULT"):
        _made(storage_scale(Places(groups=("n1",))), rules[1:], ("out/sum.bin", GROUP))


def test_two_files_of_one_name_that_differ_are_named() -> None:
    rules = [literal(b"a/x", DP="local"), literal(b"b/x", DP="local")]
    made = _made(_store("storage-scale"), rules, ("a/x", GROUP), ("b/x", COPIES))
    assert any("a policy sees no path" in gap.reason for gap in made.gaps)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RULE 'th1' SET POOL 'x' WHERE NAME LIKE 'a' ESCAPE '\\'\n",
        "RULE 'default' SET POOL 'x'",
        "RULE 'default' SET POOL 'x'\nRULE 'th1' SET POOL 'y'\n",
        "RULE 'th1' SET POOL 'x' WHERE NAME LIKE 'a' OR 1=1\nRULE 'default' SET POOL 'x'\n",
        "RULE 'th1' EXTERNAL POOL 'x' EXEC '/bin/sh'\nRULE 'default' SET POOL 'x'\n",
        "/* x */ RULE 'th1' DELETE */\nRULE 'default' SET POOL 'x'\n",
        "RULE 'th1' SET POOL 'x' REPLICATE(4) WHERE NAME LIKE 'a' ESCAPE '\\'\n"
        "RULE 'default' SET POOL 'x'\n",
    ],
)
def test_nothing_else_passes_as_a_policy(text: str) -> None:
    with pytest.raises(InputError):
        check_policy(text)


def test_a_dead_node_is_named_and_no_rule_is_written() -> None:
    with socket.socket() as bound:  # bound but not listening: connections are refused
        bound.bind(("127.0.0.1", 0))
        places = structs.replace(SITE, groups=("127.0.0.1",), port=bound.getsockname()[1])
        with pytest.raises(UsageError, match="does not answer"):
            _made(seaweedfs(places), [rule("out/a.bin", DP="local")], ("out/a.bin", GROUP))
        bound.listen()
        made = _made(seaweedfs(places), [rule("out/a.bin", DP="local")], ("out/a.bin", GROUP))
        assert f"-dataNode=127.0.0.1:{places.port} -apply" in made.text.decode()


@pytest.mark.parametrize(
    "line",
    [
        "fs.configure -locationPrefix=/a -apply; fs.rm -rf /",
        "fs.configure -locationPrefix=/a b -apply",
        "fs.rm -r /", "", "fs.configure -locationPrefix=out -apply",
    ],
)  # fmt: skip  # a table
def test_nothing_else_passes_as_a_rule(line: str) -> None:
    with pytest.raises(InputError):
        check_rules(f"# x\n{line}\n")


def test_a_task_whose_files_differ_gets_no_configuration() -> None:
    rules = [rule("a", DP="local"), rule("b", DP="local"), rule("c", producer="other", DP="local")]
    made = _made(_store("hercules"), rules, ("a", LOCAL), ("b", COPIES), ("c", LOCAL))
    assert set(json.loads(made.text)["tasks"]) == {"other"}
    assert any("a process has one configuration" in gap.reason for gap in made.gaps)


@pytest.mark.parametrize("name", ["storage-scale", "seaweedfs", "hercules", "taskvine", "juicefs"])
def test_hostile_names_reach_no_document(name: str) -> None:
    """Each is left out and counted, or appears as the plain characters that it consists of."""
    store = _store(name)
    for hostile in HOSTILE_NAMES:
        one = literal(hostile, DP="local")
        target = Target(path=hostile, kind="file", hints=COPIES, rule=one.id, pattern="p")
        try:
            made = store.document(hint_file(one), TagPlan(targets=[target]))
        except TracehintError:
            made = None
        if not re.fullmatch(rb"[A-Za-z0-9_.+=~-]+", hostile):
            keeps = name == "hercules"  # contains the name of its task, not of a file
            assert made is None or keeps, hostile
        if made is not None and name in ("hercules", "taskvine"):
            json.loads(made.text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["storage-scale", "taskvine", "juicefs", "hercules"])
def test_emit_writes_the_document(tmp_path: Path, name: str) -> None:
    (tmp_path / "map.toml").write_text('pool = "data"\nbase = "/wf"\n')
    hints = save(tmp_path, rule("out/part_{n}.bin", examples=("out/part_1.bin",), Replication="3"))
    words: list[Any] = ["emit", hints, "--store", name, "--map", tmp_path / "map.toml"]
    done = tracehint(*words, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "not run by this project" in done.stderr
    assert "1 record: review" in done.stderr
    text = (tmp_path / "out").read_text()
    assert ("not run by this project" in text) == (name != "juicefs"), "a list has no comments"
    refused = tracehint("apply", hints, "--store", name, "--as-root", tmp_path)
    assert refused.returncode == 2
