"""Small workflow files that expand to much: their readers stay within time and memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_engine_graphs import files, save, tasks
from tracehint.adapters.engines.graph_base import MAX_WORD
from tracehint.adapters.engines.graphs import read_graph
from tracehint.adapters.engines.makeflow import text as makeflow_text
from tracehint.adapters.engines.makeflow.text import parse_rules
from tracehint.adapters.engines.nextflow import graph as nextflow_work
from tracehint.adapters.engines.tag_table import MAX_RECORD, TagTarget, encode
from tracehint.adapters.stores.registry import open_store
from tracehint.errors import InputError

MAKE = "# Make data base, printed on x\n\n{}\n\n# Finished Make data base\n"


def test_makeflow_variables_that_double_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEHINT_LIMITS", f"substituted-bytes={1 << 16}")
    rule = "x: y\n\techo $A\n"
    assert parse_rules("A=ab\n" + "A=$A$A\n" * 4 + rule)[0].command == "echo " + "ab" * 16
    for grows in ("A=$A$A\n" * 20, "A+=" + "x" * 99 + "\n"):
        with pytest.raises(InputError, match="text from its variables: more than"):
            parse_rules("A=ab\n" + grows * 2000 + rule)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"a\ b 'c d'\e:" + '"f g"h "" i->j', [b"a b", b"c de", None, b"f gh", b"", b"i"]),
        ("'a'\"b\"c: d\\:e", [b"abc", None, b"d:e"]),
        ('\'a\\\' "b\\"":', [b"a\\", b'b"', None]),
    ],
)
def test_makeflow_names_in_quotes(line: str, words: list[bytes | None]) -> None:
    assert list(makeflow_text._words(line)) == words


def test_cwl_collections_of_collections(tmp_path: Path) -> None:
    """Each of sixty contains the next one twice and the first one again: 2^60 paths."""
    members = {
        f"_:{i}{k}": {"prov:collection": f"c{i}", "prov:entity": member}
        for i in range(60)
        for k, member in enumerate((f"c{i + 1}", f"f{i % 2}", f"c{i + 1}", "c0"))
    }
    data = {
        "activity": {"a": {"prov:label": "Run of workflow/packed.cwl#main/s"}},
        "entity": {f"f{n}": {"cwlprov:basename": f"name{n}"} for n in (0, 1)},
        "hadMember": members,
        "used": {"u": {"prov:activity": "a", "prov:entity": "c0"}},
    }
    save(tmp_path, "metadata/provenance/primary.cwlprov.json", json.dumps(data))
    assert sorted(files(read_graph(tmp_path), "a", "in")) == [b"f0/name0", b"f1/name1"]


def test_make_recipes_are_expanded_as_far_as_they_are_kept(tmp_path: Path) -> None:
    lines = "\techo $(V)\n" * 40
    text = f"V = {'x' * 50_000}\nW = y\n\na: b b c\n#  recipe to execute\n{lines}\techo $(W)\n\n"
    (task,) = tasks(read_graph(save(tmp_path, "all", MAKE.format(text))))
    assert task["command"].startswith(b"echo xx") and len(task["command"]) == MAX_WORD
    text = f"V = {'x' * 50_000}\nW = y\n\na: b b c\n#  recipe to execute\n\techo $(V)$(V) $(W)\n\n"
    graph = read_graph(save(tmp_path, "long", MAKE.format(text)))
    assert tasks(graph)[0]["command"] == b"echo $(V)$(V) $(W)"
    assert files(graph, tasks(graph)[0]["task"], "in") == [b"b", b"c"]


def test_nextflow_says_that_a_task_has_more_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nextflow_work, "MAX_FILES", 3)
    for name in "abcde":
        save(tmp_path, f"work/ab/{'c' * 30}/{name}", "x")
    trace = save(tmp_path, "trace.txt", f"task_id\thash\tprocess\n1\tab/{'c' * 6}\tP\n")
    graph = read_graph(trace)
    assert graph.io.num_rows == 3
    assert graph.notes == ("task ab/cccccc: of more than 3 files the first ones",)


def test_settings_that_no_tag_table_holds_are_told() -> None:
    store = open_store("xattr")
    hints = {"DP": "local"}
    names = (b"fine", b"../out", b"/abs", b"n" * MAX_RECORD)
    table, gaps, count = encode(
        [[TagTarget(path=name, kind="C", hints=hints) for name in names]], store
    )
    assert count == 1 and b"\0fine\0" in table and b"out\0" not in table
    assert [gap.reason[:14] for gap in gaps] == ["a file outside"] * 3
