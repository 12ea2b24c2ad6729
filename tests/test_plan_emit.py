"""A plan in each engine's syntax, checked by a separate grammar; test_plan_emit_run.py runs it in
the engines."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.hints import rule
from tests.support.hostile import HOSTILE_NAMES
from tests.support.plans import HOSTS, planned, save_plan
from tracehint.adapters.engines.emitters import EmitRequest, emit
from tracehint.adapters.engines.makeflow.parts import interleave_parts
from tracehint.adapters.engines.makeflow.workflow import read_workflow
from tracehint.adapters.engines.planned import find_parts
from tracehint.adapters.place.parts import read_task
from tracehint.adapters.stores.registry import open_store
from tracehint.cli import main
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import FilePart, HintFile
from tracehint.hintgen.hints.pathtext import to_text

MAKEFLOW = """\
OUT=b
export SITE=here
a.txt: in.txt
\tsort in.txt > a.txt
$OUT.txt: in.txt
\tLOCAL sort -r in.txt > b.txt
c.txt: a.txt b.txt
@X=1
\tcat a.txt b.txt > c.txt; echo \\$HOME
"""
PLAN = {"a.txt": 0, "b.txt": 1, "n2": 1}
LOCAL = [FilePart("a.txt", 0, {"DP": "collocation|part-0"})]


def texts(hints: HintFile, engine: str, folder: Path, **more: Any) -> dict[str, str]:
    """Return the files that an emitter writes, by name."""
    request = EmitRequest(
        engine=engine,
        workflow=more.pop("workflow", None),
        store=open_store("xattr"),
        output=more.pop("output", folder / "out.txt"),
        **more,
    )
    files = emit(hints, request).files
    return {
        path.name if path else "": data.decode(errors="replace") for path, data in files.items()
    }


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.toml"
    path.write_text(HOSTS)
    return path


@pytest.fixture
def makeflow(tmp_path: Path) -> Path:
    path = tmp_path / "w.mf"
    path.write_text(MAKEFLOW)
    return path


# Tasks and their names ------------------------------------------------------------------------


def test_a_task_is_found_by_any_of_its_names_and_never_by_one_of_several() -> None:
    plan = planned({"x": 0, "n1": 1, "both": 2, "gone": 3}).plan
    assert plan is not None
    found = find_parts(plan, [["x", "n0"], ["y", "n1"], ["both"], ["both"]])
    assert found.of_task == (0, 1, None, None)
    assert (found.bound, found.unknown, found.whole) == (2, 2, False)
    assert len(found.remarks()) == 2
    assert find_parts(plan, []).of_task == ()


# Makeflow -------------------------------------------------------------------------------------


def test_makeflow_gets_a_table_of_parts_and_the_plans_hints(tmp_path: Path, makeflow: Path) -> None:
    rules = [rule("{name}.txt", DP="local", producer="sort", consumers=("cat",))]
    hints = save_plan(tmp_path, planned(PLAN, LOCAL, rules))
    out = tmp_path / "t.mf"
    assert (
        main(["emit", str(hints), "--workflow-engine", "makeflow", str(makeflow), "-o", str(out)])
        == 0
    )
    folder = tmp_path / "t.mf.tracehint"
    parts = [read_task(folder / "parts", k) for k in range(3)]
    assert [task.part for task in parts] == [0, 1, 1]
    assert parts[2].inputs == (b"a.txt", b"b.txt")
    table = (folder / "table").read_bytes()
    assert b"collocation|part-0".hex().encode() in table
    assert table.count(b"\0b.txt\0") == 0, "the plan is silent about it, whatever the rule says"
    assert "BATCH_OPTIONS" not in out.read_text()


def test_a_plan_that_binds_no_task_starts_them_where_their_inputs_lie(
    tmp_path: Path, makeflow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [rule("{name}.txt", DP="local", producer="sort", consumers=("cat",))]
    hints = save_plan(tmp_path, planned({}, [FilePart("a.txt", None, {"DP": "local"})], rules))
    out = tmp_path / "t.mf"
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(makeflow)]
    assert main([*command, "-o", str(out)]) == 0
    assert "--store STORE --parts t.mf.tracehint/parts" in capsys.readouterr().err
    folder = tmp_path / "t.mf.tracehint"
    assert read_task(folder / "parts", 2).part is None
    assert (folder / "table").read_bytes().count(b"\0b.txt\0") == 0


def test_rules_act_where_the_plan_is_for_another_workflow(tmp_path: Path, makeflow: Path) -> None:
    rules = [rule("{name}.txt", DP="local", producer="sort", consumers=("cat",))]
    hints = save_plan(tmp_path, planned({**PLAN, "z.txt": 0}, LOCAL, rules))
    out = tmp_path / "t.mf"
    main(["emit", str(hints), "--workflow-engine", "makeflow", str(makeflow), "-o", str(out)])
    table = (tmp_path / "t.mf.tracehint" / "table").read_bytes()
    assert table.count(b"\0b.txt\0") == 1


def test_makeflow_tells_slurm_where_nodes_are_known(
    tmp_path: Path, makeflow: Path, hosts: Path
) -> None:
    found = texts(planned(PLAN), "makeflow", tmp_path, workflow=makeflow, hosts=hosts)
    lines = found["out.txt"].splitlines()
    assert [line for line in lines if not line.startswith("@BATCH")] == MAKEFLOW.splitlines()
    assert lines[3] == "@BATCH_OPTIONS=--nodelist=node1"
    assert lines[6] == "@BATCH_OPTIONS=--nodelist=node2"
    assert lines[lines.index("@X=1") + 1] == "@BATCH_OPTIONS=--nodelist=node2"


TURNS = """\
HEAD=1
# a comment of the first
a: in
\tmake a
b: in

\tmake b
# of c
c: \\
  in
@X=1
\tmake c \\
 more
d: a b c
\tmake d"""


def test_the_parts_take_turns_in_a_makeflow_file(tmp_path: Path) -> None:
    assert interleave_parts([0, 0, 0, 1, 1, None, 2]) == [5, 0, 3, 6, 1, 4, 2]
    source = tmp_path / "w.mf"
    source.write_text(TURNS)
    hints = save_plan(tmp_path, planned({"a": 0, "b": 0, "c": 1, "d": 1}))
    out = tmp_path / "t.mf"
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(source), "-o", str(out)]
    assert main(command) == 0
    before, after = read_workflow(source).tasks, read_workflow(out).tasks
    assert [task.targets[0] for task in after] == [b"a", b"c", b"b", b"d"]
    what = {(task.targets, task.sources, task.command.replace(" ", "")) for task in before}
    assert {(task.targets, task.sources, task.command.replace(" ", "")) for task in after} == what
    assert out.read_text().count("# of c\nc: \\\n  in\n@X=1\n") == 1
    parts = tmp_path / "t.mf.tracehint" / "parts"
    assert [read_task(parts, k).part for k in range(4)] == [0, 1, 0, 1]


def test_rules_keep_their_order_where_variables_stand_between_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for between in ("X=2\n", "export X\n", ".MAKEFLOW CATEGORY x\n"):
        source = tmp_path / "w.mf"
        source.write_text(TURNS.replace("# of c\n", between))
        hints = save_plan(tmp_path, planned({"a": 0, "b": 0, "c": 1, "d": 1}))
        command = ["emit", str(hints), "--workflow-engine", "makeflow", str(source), "--force"]
        assert main([*command, "-o", str(tmp_path / "t.mf")]) == 0
        assert "keep their order" in capsys.readouterr().err
        assert (tmp_path / "t.mf").read_text() == source.read_text()


@pytest.mark.parametrize("where", ["BATCH_OPTIONS=-p q\n", "b: in\n@BATCH_OPTIONS = -p q\n\ty\n"])
def test_makeflow_keeps_what_its_author_said_to_the_batch_system(
    tmp_path: Path, hosts: Path, where: str
) -> None:
    source = tmp_path / "w.mf"
    source.write_text(where + "a: in\n\tx\n")
    found = texts(planned({"a": 1, "b": 0}), "makeflow", tmp_path, workflow=source, hosts=hosts)
    said = [line for line in found["out.txt"].splitlines() if line.startswith("@BATCH_OPTIONS=")]
    other = [] if where[0] == "B" else ["@BATCH_OPTIONS=$BATCH_OPTIONS --nodelist=node1"]
    own = "$BATCH_OPTIONS " if where[0] == "B" else ""
    assert said == [*other, f"@BATCH_OPTIONS={own}--nodelist=node2"]


def test_json_workflows_keep_what_their_author_said_to_the_batch_system(
    tmp_path: Path, hosts: Path
) -> None:
    rules = [
        {"command": "x", "inputs": [], "outputs": ["a"], "environment": {"BATCH_OPTIONS": "-p q"}},
        {"command": "y", "inputs": [], "outputs": ["b"]},
        {"command": "z", "inputs": [], "outputs": ["c"]},
    ]
    source = tmp_path / "w.json"
    source.write_text(json.dumps({"rules": rules}))
    found = texts(planned({"a": 1, "b": 0}), "makeflow", tmp_path, workflow=source, hosts=hosts)
    said = [
        r.get("environment", {}).get("BATCH_OPTIONS") for r in json.loads(found["out.txt"])["rules"]
    ]
    assert said == [None, "--nodelist=node1", "-p q --nodelist=node2"]


# Slurm ----------------------------------------------------------------------------------------


def jobs(text: str) -> list[list[str]]:
    """Return the words of each `submit` line; for the job's line, the rule's own command."""
    lines = re.findall(r"^j\d+=\$\((submit .*) \"\$@\"\)$", text, re.MULTILINE | re.DOTALL)
    out = []
    for block in re.split(r"\n(?=j\d+=\$\(submit )", text):
        found = re.match(r"j\d+=\$\((submit .*) \"\$@\"\)", block, re.DOTALL)
        out += [shlex.split(found[1])] if found else []
    assert lines
    for words in out:
        command, checked, _ = words[3].partition(" || exit\nfor made in ")
        assert checked, "and a look at what the rule had to make"
        words[3] = shlex.split(command)[2]
    return out


def test_slurm_jobs_follow_their_inputs_and_their_parts(
    tmp_path: Path, makeflow: Path, hosts: Path
) -> None:
    text = texts(planned(PLAN), "slurm", tmp_path, workflow=makeflow, hosts=hosts)["out.txt"]
    first, second, third = jobs(text)
    assert first[1:] == ["", "n0-sort", "sort in.txt > a.txt", "--nodelist=node1"]
    assert second[3:] == ["sort -r in.txt > b.txt", "--nodelist=node2"]
    assert third[1:] == [
        ":$j0:$j1",
        "n2-cat",
        "cat a.txt b.txt > c.txt; echo $HOME",
        "--nodelist=node2",
    ]


def test_slurm_uses_a_feature_where_the_nodes_have_one(tmp_path: Path, makeflow: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text('[[host]]\nname = "n1"\nfeature = "rack1"\n[[host]]\nname = "n2"\n')
    text = texts(planned(PLAN), "slurm", tmp_path, workflow=makeflow, hosts=hosts)["out.txt"]
    assert [words[-1] for words in jobs(text)] == [
        "--constraint=rack1",
        "--nodelist=n2",
        "--nodelist=n2",
    ]


def test_slurm_refuses_what_it_cannot_order_or_run(tmp_path: Path, hosts: Path) -> None:
    cycle = [
        {"command": "x", "inputs": ["b"], "outputs": ["a"]},
        {"command": "y", "inputs": ["a"], "outputs": ["b"]},
    ]
    nested = [{"workflow": "x", "inputs": [], "outputs": ["a"]}]
    for rules, said in ((cycle, "wait for each other"), (nested, "no command")):
        source = tmp_path / "w.json"
        source.write_text(json.dumps({"rules": rules}))
        with pytest.raises(InputError, match=said):
            texts(planned({"a": 0}), "slurm", tmp_path, workflow=source, hosts=hosts)
    with pytest.raises(UsageError, match="nodes"):
        texts(planned({"a": 0}), "slurm", tmp_path, workflow=tmp_path / "w.json")
    with pytest.raises(UsageError, match="workflow"):
        texts(planned({"a": 0}), "slurm", tmp_path, hosts=hosts)


def test_commands_stay_words_whatever_they_hold(tmp_path: Path, hosts: Path) -> None:
    evil = [name.decode("utf-8", "surrogateescape") for name in HOSTILE_NAMES if b"\0" not in name]
    rules = [{"command": f"x {n}", "inputs": [], "outputs": [f"o{k}"]} for k, n in enumerate(evil)]
    source = tmp_path / "w.json"
    source.write_text(json.dumps({"rules": rules}))
    request = EmitRequest(
        engine="slurm",
        workflow=source,
        store=open_store("xattr"),
        output=tmp_path / "o",
        hosts=hosts,
    )
    (data,) = emit(planned({"o0": 0}), request).files.values()
    said = [words[3] for words in jobs(data.decode("utf-8", "surrogateescape"))]
    assert said == [f"x {n}" for n in evil]


# Nextflow -------------------------------------------------------------------------------------

NEXTFLOW = {"MAKE": 1, "COUNT (1)": 0, "COUNT (2)": 1, "SUB:LAST (it's)": 1, "SUB:LAST (fine)": 0}


def test_nextflow_knows_the_part_of_a_task_by_its_tag(tmp_path: Path, hosts: Path) -> None:
    text = texts(planned(NEXTFLOW), "nextflow", tmp_path, hosts=hosts)["out.txt"]
    assert "withName: 'MAKE' {\n        ext.tracehint_part = 1\n" in text
    assert "clusterOptions = '--nodelist=node2'" in text
    assert "['1': 0, '2': 1]" in text
    assert "{ ['1': '--nodelist=node1', '2': '--nodelist=node2'] }" in text
    assert "withName: 'SUB:LAST'" in text
    assert "it's" not in text
    plain = texts(planned(NEXTFLOW), "nextflow", tmp_path)["out.txt"]
    assert "clusterOptions" not in plain
    assert "ext.tracehint_part" in plain


def test_nextflow_long_tables_stand_in_several_closures(tmp_path: Path) -> None:
    many = {f"COUNT ({k})": k % 3 for k in range(1000)}
    text = texts(planned(many), "nextflow", tmp_path)["out.txt"]
    assert text.count("{ ['") == 3


def test_nextflow_hostile_names(tmp_path: Path) -> None:
    names = [name.decode("utf-8", "backslashreplace") for name in HOSTILE_NAMES]
    tasks = {f"P ({n})": 0 for n in names if n} | {n: 1 for n in names if n}
    text = texts(planned(tasks), "nextflow", tmp_path)["out.txt"]
    body = [line for line in text.splitlines() if line and not line.startswith("//")]
    literal = r"'[^'\\\x00-\x1f]*': \d+"
    closures = rf"\[(?:\{{ \[{literal}(?:, {literal})*\] \}}(?:, )?)+\]"
    table = rf"ext\.tracehint_part = \{{ {closures}\.findResult .*"
    for line in body[1:-1]:
        known = r"    withName: '[A-Za-z0-9_:]+' \{|    \}|        ext\.tracehint_part = \d+"
        assert re.fullmatch(rf"{known}|        {table}", line), line


# Swift/T, Parsl, JSON -------------------------------------------------------------------------


def test_swift_t_gets_a_table_of_nodes(tmp_path: Path, hosts: Path) -> None:
    tasks = {"a.txt": 0, 'q"\n\\x': 1}
    text = texts(planned(tasks), "swift-t", tmp_path, hosts=hosts)["out.txt"]
    assert 'string tracehint_node[string];\ntracehint_node["a.txt"] = "node1";' in text
    assert 'tracehint_node["q\\"?\\\\x"] = "node2";' in text
    plain = texts(planned(tasks), "swift-t", tmp_path)["out.txt"]
    assert 'int tracehint_part[string];\ntracehint_part["a.txt"] = 0;' in plain


def test_parsl_names_stand_in_the_data_alone(tmp_path: Path, hosts: Path) -> None:
    evil = {name.decode("utf-8", "backslashreplace"): 1 for name in HOSTILE_NAMES if name}
    module = tmp_path / "tracehint_parts.py"
    plain = texts(planned({"a": 0}), "parsl", tmp_path, output=module)
    found = texts(planned({"a": 0, **evil}), "parsl", tmp_path, output=module, hosts=hosts)
    assert found["tracehint_parts.py"] == plain["tracehint_parts.py"]
    ast.parse(found["tracehint_parts.py"])
    data = json.loads(found["tracehint_parts.json"])
    assert data["nodes"] == {"0": "node1", "1": "node2"}
    assert data["tasks"] == {"a": 0, **evil}
    for bad in ("x-y.py", "tracehint", "a b.py"):
        with pytest.raises(UsageError, match="module"):
            texts(planned({"a": 0}), "parsl", tmp_path, output=tmp_path / bad)


def test_json_for_any_scheduler(tmp_path: Path, hosts: Path) -> None:
    files = [*LOCAL, FilePart(to_text(b"x\n\xff"), None, {"Replication": "2"})]
    hints = save_plan(tmp_path, planned(PLAN, files))
    out = tmp_path / "parts.json"
    command = ["emit", str(hints), "--workflow-engine", "json", "-o", str(out)]
    assert main([*command, "--hosts", str(hosts)]) == 0
    data = json.loads(out.read_text())
    assert data["schema"] == "tracehint.parts/1"
    assert data["seconds"] == {"default": 34.0, "planned": 13.0}
    assert data["parts"] == [
        {"part": 0, "node": "node1", "tasks": ["a.txt"], "files": ["a.txt"]},
        {"part": 1, "node": "node2", "tasks": ["b.txt", "n2"], "files": []},
    ]
    assert data["files"][1] == {"path": "x\\x0a\\xff", "part": None, "hints": {"Replication": "2"}}
    assert json.loads(texts(planned(PLAN), "json", tmp_path)["out.txt"])["parts"][0]["node"] is None


@pytest.mark.parametrize("engine", ["slurm", "parsl", "json"])
def test_without_a_plan_there_is_nothing_to_say(tmp_path: Path, engine: str) -> None:
    for hints in (planned({}), HintFile((), {}, ())):
        with pytest.raises(UsageError):
            texts(hints, engine, tmp_path)


def test_the_plans_files_reach_a_stores_script(tmp_path: Path) -> None:
    rules = [
        rule("{name}.txt", DP="local", producer="sort", consumers=("cat",), examples=("a.txt",))
    ]
    hints = save_plan(tmp_path, planned(PLAN, LOCAL, rules))
    assert main(["emit", str(hints), "--store", "xattr", "-o", str(tmp_path / "s.sh")]) == 0
    data = (tmp_path / "s.sh.data").read_bytes()
    assert b"collocation|part-0".hex().encode() in data
