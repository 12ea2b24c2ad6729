"""The annotated Makeflow file: which rules tag or create which files; nothing else changes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.hints import literal, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.engines.makeflow.emit import targets_by_task
from tracehint.adapters.engines.makeflow.text import parse_rules
from tracehint.adapters.engines.makeflow.workflow import read_workflow
from tracehint.cli import main
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile, Rule

WORKFLOW = """\
# a comment: with a colon
N=3
raw.dat: make.sh
\tsh make.sh raw.dat $N

part_0.dat part_0_side.dat: raw.dat cut.sh
\tLOCAL sh cut.sh raw.dat 0 part_0.dat  # a remark

part_1.dat: raw.dat \\
   cut.sh
@EXTRA=1
   sh cut.sh raw.dat 1 \\
     'part_1.dat'
sum.txt: part_0.dat part_1.dat
\tcat part_0.dat part_1.dat > "sum.txt"; wc -c < shared.bin >> sum.txt
"""
RULES = (
    rule("raw.dat", producer="make.sh", consumers=("cut.sh",), Replication=2),
    rule("part_{n}.dat", producer="cut.sh", consumers=("cat", "wc"), DP="collocation|sum"),
    rule("shared.bin", producer="cut.sh", consumers=("wc",), BlockSize=65536),
    rule("part_{n}.log", producer="cut.sh", consumers=(), DP="local", pattern="pipeline",
         examples=("part_0.log", "part_1.log")),
)  # fmt: skip  # a table


def write(folder: Path, text: str = WORKFLOW) -> Path:
    """Write the workflow file."""
    path = folder / "w.mf"
    path.write_text(text, newline="")
    return path


def hint_file(*rules: Rule) -> HintFile:
    """Return a hint file with these rules."""
    return HintFile(learned_from=(), parameters={}, rules=rules)


def plan(workflow: Path, *rules: Rule) -> list[dict[bytes, tuple[str, dict[str, str]]]]:
    """Return for each task: path -> (kind, hints)."""
    tasks, _ = targets_by_task(hint_file(*rules), read_workflow(workflow), None, precreate=True)
    return [{t.path: (t.kind, t.hints) for t in task} for task in tasks]


def emit(workflow: Path, *rules: Rule, more: tuple[str, ...] = ()) -> Path:
    """Write the annotated file `out.mf` next to the workflow."""
    hints = save(workflow.parent, *rules)
    out = workflow.parent / "out.mf"
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(workflow), "-o", str(out)]
    assert main([*command, "--force", *more]) == 0
    return out


def test_each_rule_gets_its_own_outputs(tmp_path: Path) -> None:
    tasks = plan(write(tmp_path), *RULES)
    part = ("C", {"DP": "collocation|sum"})
    shared = ("K", {"BlockSize": "65536"})
    assert tasks[0] == {b"raw.dat": ("C", {"Replication": "2"})}
    assert tasks[1] == {
        b"part_0.dat": part,
        b"shared.bin": shared,
        b"part_0.log": ("C", {"DP": "local"}),
    }
    assert tasks[2] == {
        b"part_1.dat": part,
        b"shared.bin": shared,
        b"part_1.log": ("C", {"DP": "local"}),
    }
    assert tasks[3] == {}


def test_an_input_of_the_run_is_tagged_but_never_made(tmp_path: Path) -> None:
    source = rule("make.sh", producer=None, consumers=("make.sh",), Replication=3)
    assert plan(write(tmp_path), source)[0] == {b"make.sh": ("F", {"Replication": "3"})}


def test_only_the_prefix_is_added(tmp_path: Path) -> None:
    path = write(tmp_path)
    out = emit(path, *RULES).read_text()
    added = re.compile(
        r"TRACEHINT_RULE=\d TRACEHINT_DIR=\./out\.mf\.tracehint; \[ -r "
        r"\./out\.mf\.tracehint/tag \] && \. \./out\.mf\.tracehint/tag; "
    )
    assert len(added.findall(out)) == 3
    assert added.sub("", out) == WORKFLOW
    assert "\tLOCAL TRACEHINT_RULE=1 " in out


def test_the_analyzer_still_sees_the_tasks_own_type(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = [task.type for task in read_workflow(path).tasks]
    assert [task.type for task in read_workflow(emit(path, *RULES)).tasks] == before


@pytest.mark.engine
def test_makeflow_reads_the_same_graph(tmp_path: Path) -> None:
    path = write(tmp_path)
    out = emit(path, *RULES)
    before, after = makeflow_rules(path), makeflow_rules(out)
    assert [(r["inputs"], r["outputs"]) for r in before] == [
        (r["inputs"], r["outputs"]) for r in after
    ]
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        assert new["command"].endswith(old["command"])
        assert new["command"].startswith(f"TRACEHINT_RULE={i} ") == (i < 3)
        assert old.get("local_job") == new.get("local_job")
        assert old.get("environment") == new.get("environment")


def makeflow_rules(path: Path) -> list[dict[str, object]] | list[dict[str, str]]:
    """Return the rules as parsed by Makeflow itself."""
    if shutil.which("makeflow_viz") is None:
        pytest.skip("makeflow is not installed")
    done = subprocess.run(["makeflow_viz", "-D", "json", path], capture_output=True, check=True)
    return list(json.loads(done.stdout.replace(b"\\'", b"'"))["rules"])


SNIPPETS = [
    "o: i\n\tcat a#b c\n", "o o2 : i\n\tcat\n\np: o\n\tcat\n", "X=o p\n$X: i\n\tcat ${X}\n",
    'X="o p"\n$X: i\n\tcat $X\n', "A=1\nA+=2\no$A: i\n\tcat\n", "o:\ti\tj\n\tcat\n",
    "o: i\n\tcat 'a\n b'\n", "o: i\n\tcat \\\n    b\n", "a\"b c\"d: i\n\tcat\n", "o: i\n   cat\n",
    "A=x\no: \"$A\" '$A' \\$A\n\tcat '$A' \"$A\"\n", "# x \\\no: i\n\tcat\n", "o\\:x: i\n\tcat\n",
    "o: i\n# c\n\n\tcat\n", "export A=1\nexport B\no: i\n\tcat $A\n", "o->b: i->c\n\tcat\n",
    "o: i\n\tLOCAL\tcat i > o\n", "o: i\n\tLOCALE x\n", "o: i\n@A=x y\n\techo $A\n",
    "X=o\nY=$X.d\n${Y}_1: i\n\tcat ${X} \"$X\"\n", ".MAKEFLOW CATEGORY c\no: i\n\tcat i\n",
]  # fmt: skip  # a table


@pytest.mark.engine
@pytest.mark.parametrize("text", SNIPPETS)
def test_the_parser_agrees_with_makeflow(tmp_path: Path, text: str) -> None:
    ours = parse_rules(text)
    theirs = makeflow_rules(write(tmp_path, text))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        # makeflow_viz swaps the two names of `a->b`: its own graph joins by a
        names = [
            sorted({e["task_name"] if isinstance(e, dict) else e for e in b[side]})  # type: ignore[union-attr]
            for side in ("outputs", "inputs")
        ]
        assert [
            sorted(p.decode() for p in set(a.targets)),
            sorted(p.decode() for p in set(a.sources)),
        ] == names
        assert a.command.split() == str(b["command"]).split()


@pytest.mark.engine
def test_makeflow_joins_renamed_files_by_the_first_name(tmp_path: Path) -> None:
    if shutil.which("makeflow_viz") is None:
        pytest.skip("makeflow is not installed")
    text = "b: a->x.in\n\tcp x.in b\nc->out: b\n\tcp b out\nd: c->'y z'\n\tcat 'y z' > d\n"
    path = write(tmp_path, text)
    dot = subprocess.run(
        ["makeflow_viz", "-D", "dot", path], capture_output=True, check=True, text=True
    ).stdout
    names = dict(re.findall(r'(F\d+) \[label = "(.*)"\]', dot))
    theirs = {
        tuple(names.get(end, end) for end in edge) for edge in re.findall(r"(\w+) -> (\w+);", dot)
    }
    ours = set()
    for number, found in enumerate(parse_rules(text)):
        ours |= {(name.decode(), f"N{number}") for name in found.sources}
        ours |= {(f"N{number}", name.decode()) for name in found.targets}
    assert ours == theirs


@pytest.mark.parametrize("text", ["o i\n\tcat\n", "\tcat\n", "o: i\np: i\n\tcat\n", "o: 'i\n"])
def test_a_broken_workflow_names_the_line(text: str) -> None:
    with pytest.raises(InputError, match=r"line \d"):
        parse_rules(text)


def test_the_parser_ends_on_any_text() -> None:
    """On random text it returns rules or raises an InputError, nothing else."""
    rng = random.Random(7)
    alphabet = "ab:=\\'\"# \t\n$@{}.>-"
    parsed = 0
    for _ in range(3000):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(40)))
        try:
            parsed += all(r.at is None or 0 <= r.at <= len(text) for r in parse_rules(text))
        except InputError:
            continue
    assert parsed > 100


def test_json_workflow(tmp_path: Path) -> None:
    data = {
        "rules": [
            {"command": "echo 1 > a", "inputs": [], "outputs": ["a"], "local_job": True},
            {
                "command": "cat a > b",
                "inputs": ["a"],
                "outputs": [{"dag_name": "b", "task_name": "b"}],
            },
        ],
        "categories": {"x": {}},
    }
    path = tmp_path / "w.json"
    path.write_text(json.dumps(data))
    out = json.loads(emit(path, rule("b", DP="local", producer="cat", consumers=())).read_text())
    assert out["rules"][0] == data["rules"][0]
    assert out["categories"] == {"x": {}}
    command = out["rules"][1].pop("command")
    assert command.startswith("TRACEHINT_RULE=1 ")
    assert command.endswith("; cat a > b")


def test_any_name_in_a_json_workflow_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    names = r'["\ud800x", "\u00e9", 7, {"dag_name": "c"}, {"task_name": "d"}]'
    path.write_text(f'{{"rules": [{{"command": "true", "inputs": {names}, "outputs": null}}]}}')
    (task,) = read_workflow(path).tasks
    assert task.sources == (b"?x", "\u00e9".encode(), b"c")
    assert task.targets == ()


@pytest.mark.parametrize("key", ["inputs", "outputs"])
def test_files_of_a_json_rule_are_a_list(tmp_path: Path, key: str) -> None:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"rules": [{"command": "true"}, {"command": "true", key: "a b"}]}))
    with pytest.raises(InputError, match=f"`{key}` of rule 1 is not a list"):
        read_workflow(path)


@pytest.mark.engine
def test_jx_workflow_is_expanded_and_runs(tmp_path: Path) -> None:
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    path = tmp_path / "w.jx"
    path.write_text(
        '{"rules": [{"command": "echo \'" + i + "\' > o_" + i, "inputs": [], '
        '"outputs": ["o_" + i]} for i in range(3)]}'
    )
    emit(path, rule("o_{n}", DP="local", producer="echo", consumers=()))
    subprocess.run(["makeflow", "--json", "out.mf"], cwd=tmp_path, check=True, capture_output=True)
    for i in range(3):
        assert (tmp_path / f"o_{i}").read_text() == f"{i}\n"
        assert os.getxattr(tmp_path / f"o_{i}", "user.DP") == b"local"


def test_hostile_names_stay_out_of_the_workflow(tmp_path: Path) -> None:
    path = write(tmp_path)
    clean = emit(path, *RULES, more=("--precreate",)).read_bytes()
    evil = [
        literal(name, producer="cut.sh", consumers=("wc",), DP="local", id=f"e{i}")
        for i, name in enumerate(HOSTILE_NAMES)
    ]
    assert emit(path, *RULES, *evil, more=("--precreate",)).read_bytes() == clean
    table = (tmp_path / "out.mf.tracehint" / "table").read_bytes()
    assert all(b"K\0" + name + b"\0" in table for name in HOSTILE_NAMES)


@pytest.mark.parametrize("name", ["a b.mf", "x;y", "$(id)", "-o", "a'b"])
def test_the_outputs_name_must_be_plain(tmp_path: Path, name: str) -> None:
    hints = save(tmp_path, *RULES)
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(write(tmp_path))]
    assert main([*command, f"--output={tmp_path / name}"]) == 2
    assert not (tmp_path / name).exists()


def test_without_a_workflow_the_remedy_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emit", str(save(tmp_path, *RULES)), "--workflow-engine", "makeflow"]) == 2
    assert "makeflow W.mf" in capsys.readouterr().err


def test_nothing_is_written_when_a_file_is_there(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "out.mf.tracehint").mkdir()
    (tmp_path / "out.mf.tracehint" / "table").write_text("precious")
    hints = save(tmp_path, *RULES)
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(path)]
    assert main([*command, "-o", str(tmp_path / "out.mf")]) == 2
    assert not (tmp_path / "out.mf").exists()
    assert (tmp_path / "out.mf.tracehint" / "table").read_text() == "precious"
