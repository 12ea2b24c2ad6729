"""Hostile names, values and maps: every store and every emitter of the registries.

New stores are covered without changes here. A store passes settings to its tool as an argument
vector of words from a grammar; other settings are reported as a gap or an error.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hints import hint_file, literal, rule
from tests.support.hostile import HOSTILE_NAMES
from tests.support.plans import HOSTS, planned
from tracehint.adapters.engines.emitters import EmitRequest, emit
from tracehint.adapters.engines.registry import EMITTERS
from tracehint.adapters.plan import TagPlan, Target
from tracehint.adapters.stores.base import VOCABULARY, Documented, Setting
from tracehint.adapters.stores.call_script import make_call_script
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.registry import names, open_store
from tracehint.errors import TracehintError
from tracehint.hintgen.hints.model import FilePart

LONG = "9" * 100_000
VALUES = [
    "a\nb", "a'b", 'a"b', "$(touch PWNED)", "`touch PWNED`", "-rf", "--help", "../../etc", "/etc",
    "a;touch PWNED", "a b", "\x1b[31m", "\udcff", "", "-1", "0", LONG, "x" * 100_000, "1e9", "٣",
]  # fmt: skip  # a table
WORD = re.compile(r"[A-Za-z0-9_.,:=/@%+{}|-]*")  # of a tool's arguments, without shell syntax
PLACES = {"DP=local": "local{}", "DP=collocation": "collocation|{}", "DP=scatter": "scatter|{}",
          "DP=distribute": "distribute|{}", "Lifetime": "temporary|{}"}  # fmt: skip  # a table


def _hints(key: str, value: str) -> dict[str, str]:
    """Return one hint of the vocabulary with a hostile value, and hints that some rows need."""
    name = key.partition("=")[0]
    said = {name: PLACES.get(key, "{}").replace("{}", value)}
    return {**said, **({"BlockSize": "65536"} if key == "DP=scatter" else {})}


def _said(store_name: str, value: str) -> Iterator[Setting]:
    store = open_store(store_name)
    for key in VOCABULARY:
        for kind in ("file", "directory"):
            try:
                settings, gaps = store.translate(_hints(key, value), kind)  # type: ignore[arg-type]
            except TracehintError:
                continue
            assert settings or gaps, (key, "neither said nor named as a gap")
            yield from settings


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_hostile_value_is_a_word_of_the_grammar_or_not_said(name: str, value: str) -> None:
    store = open_store(name)
    for setting in _said(name, value):
        if not isinstance(store, Documented):
            store.check_key(setting.key, allow_trusted=True)
        if not isinstance(store, CommandStore):
            continue  # bytes of an attribute, set by a system call or as hexadecimal
        try:
            words = store.argv(setting, "PATH")
        except TracehintError:
            continue
        for word in words:
            assert WORD.fullmatch(word) and len(word) < 300, (setting.hint[:80], word[:80])
        assert re.fullmatch("[a-z][a-z0-9_-]*", words[0]), "the program is the table's"


@pytest.mark.parametrize("name", [n for n in names() if isinstance(open_store(n), CommandStore)])
def test_no_name_is_shell_text_in_a_script_of_calls(name: str) -> None:
    """The script's code is the same for every name: names occur only in its data."""
    store = open_store(name)
    assert isinstance(store, CommandStore)
    texts = set()
    for path in [b"plain", *HOSTILE_NAMES, b"../x", b"a/../../b"]:
        hints = {"Replication": "3", "BlockSize": "65536", "DP": "local"}
        targets = [Target(path=path, kind="file", hints=hints, rule="R", pattern="p")]
        try:
            plan = TagPlan(targets=targets)
            made = make_call_script(hint_file(rule("x", DP="local")), plan, store, inside=False)
        except TracehintError:
            continue
        texts.add(re.sub(r"\b\d+\b", "N", made.text))
    assert len(texts) <= 2, "with a record, and without one"


@pytest.mark.parametrize("name", [n for n in names() if isinstance(open_store(n), Documented)])
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_hostile_value_opens_no_line_in_a_document(name: str, value: str) -> None:
    store = open_store(name)
    assert isinstance(store, Documented)
    for key in VOCABULARY:
        target = Target(path=b"a.bin", kind="file", hints=_hints(key, value), rule="r", pattern="p")
        try:
            made = store.document(hint_file(rule("a.bin", DP="local")), TagPlan(targets=[target]))
        except TracehintError:
            continue
        assert b"PWNED" not in made.text and len(made.text) < 20_000, key
        assert not set(made.text.decode()) - set(string.printable), key


MAPS = [f"{key} = {value}" for key in ("local", "pool", "server", "base") for value in (
    '"a\\nb"', '"$(touch PWNED)"', '"-o x"', '"../x"', "'a\"b'", f'"{"x" * 100_000}"', "3",
    '"\\u001b[31m"',
)]  # fmt: skip  # a table
MAPS += ['groups = ["$(id)"]', 'groups = ["-x"]', "groups = 3", 'copies = { 2 = "-x; id" }']


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("text", MAPS, ids=range(len(MAPS)))
def test_a_hostile_map_is_refused_or_stays_one_word(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text + "\n")
    try:
        store = open_store(name, places=path)
    except TracehintError:
        return
    for key, value in (("DP=local", ""), ("DP=collocation", "g"), ("Replication", "2")):
        try:
            settings, _ = store.translate(_hints(key, value), "file")
            if not isinstance(store, CommandStore):
                continue
            said = [word for one in settings for word in store.argv(one, "PATH")]
        except TracehintError:
            continue
        assert all(WORD.fullmatch(word) and len(word) < 300 for word in said), said


NAMES = [*HOSTILE_NAMES, b"$import", b"../../escape", b"/etc/passwd"]


def _sources(folder: Path) -> dict[str, Path]:
    """Write workflows for the engines' emitters, with hostile names of files and tasks."""
    texts = [n.decode("utf-8", "backslashreplace") for n in NAMES]
    import json

    rules = [{"command": "true", "inputs": ["in"], "outputs": [n]} for n in texts if n]
    uses = [{"lfn": n, "type": "output"} for n in texts]
    files = {
        "makeflow": ("w.json", json.dumps({"rules": rules})),
        "pegasus": ("w.yml", json.dumps({"pegasus": "5.0", "jobs": [
            {"type": "job", "name": n, "id": n, "uses": uses} for n in texts[:9]]})),
        "cwl": ("w.cwl", json.dumps({"cwlVersion": "v1.2", "class": "Workflow", "inputs": {},
            "outputs": {}, "steps": {n: {"run": "t.cwl", "in": {}, "out": []} for n in texts}})),
        "snakemake": ("Snakefile", "rule all:\n    input: []\n"),
    }  # fmt: skip  # a table
    for name, text in files.values():
        (folder / name).write_text(text)
    return {engine: folder / name for engine, (name, _) in files.items()} | {
        "slurm": folder / "w.json"
    }


@pytest.mark.parametrize("engine", EMITTERS)
def test_every_emitter_takes_hostile_names_and_values(tmp_path: Path, engine: str) -> None:
    """Nothing is run or written elsewhere; rejected input raises an error with a remedy."""
    (tmp_path / "hosts.toml").write_text(HOSTS)
    tasks = {n.decode("utf-8", "backslashreplace"): 0 for n in NAMES}
    rules = [
        literal(n, DP="local", Replication=VALUES[k % len(VALUES)][:300])
        for k, n in enumerate(NAMES)
        if b"\0" not in n
    ]
    parts = [FilePart("db.bin", 0, {"DP": value[:300]}) for value in VALUES[:1]]
    output = tmp_path / ("out.py" if engine in ("parsl", "dask", "taskvine") else "out.cwl")
    request = EmitRequest(
        engine=engine, workflow=_sources(tmp_path).get(engine), store=open_store("xattr"),
        output=output, hosts=tmp_path / "hosts.toml",
    )  # fmt: skip  # a table
    before = sorted(tmp_path.rglob("*"))
    try:
        made = emit(planned(tasks, parts, rules), request)
    except TracehintError as error:
        assert error.remedy
        return
    assert sorted(tmp_path.rglob("*")) == before, "an emitter returns its files"
    for path in made.files:
        assert path is not None and Path(os.path.normpath(path)).is_relative_to(tmp_path)
    for line in made.remarks:
        assert line.isprintable(), line
