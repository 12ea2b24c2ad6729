"""Snakemake and Nextflow annotations; Snakemake itself runs the result."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.engines import SNAKEMAKES, engine
from tests.support.hints import hint_file, literal, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines.emitters import EmitRequest, emit
from tracehint.adapters.stores.registry import open_store
from tracehint.cli import main
from tracehint.hintgen.hints.model import Conditions, Formula, Hint, Rule

SNAKEFILE = """\
rule all:
    input: "out/sum.txt"
rule make:
    output: "raw/all.txt"
    shell: "seq 12 > {output}"
rule cut:
    input: "raw/all.txt"
    output: "parts/p_{i}.txt"
    shell: "awk 'NR % 3 == {wildcards.i}' {input} > {output}"
rule square:
    input: "parts/p_{i}.txt"
    output: "squares/s_{i}.txt"
    shell: "awk '{{print $1 * $1}}' {input} > {output}; "
           "getfattr --only-values -n user.DP squares > dp_{wildcards.i}.log || true"
rule sum:
    input: expand("squares/s_{i}.txt", i=range(3))
    output: "out/sum.txt"
    shell: "cat {input} | sort -n > {output}"
"""
RULES = (
    rule(
        "raw/all.txt",
        producer="make",
        consumers=("cut",),
        Replication=3,
        pattern="broadcast",
        examples=("raw/all.txt",),
    ),
    rule(
        "parts/p_{n}.txt",
        producer="cut",
        consumers=("square",),
        DP="local",
        examples=("parts/p_0.txt",),
    ),
    rule(
        "squares/s_{n}.txt",
        producer="square",
        consumers=("sum",),
        DP="collocation|sum",
        examples=("squares/s_0.txt", "squares/s_2.txt"),
    ),
)
DUMP = """
for r in workflow.rules:
    for f in [*r.input, *r.output]:
        print("FLAG", r.name, str(f), sorted(f"{k}={v}" for k, v in f.flags.items()))
    print("GROUP", r.name, r._group)
"""


def workflow(folder: Path, extra: str = "") -> Path:
    """Create a folder with the Snakefile."""
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE + extra)
    return folder


def emitted(folder: Path, *rules: Rule, more: tuple[str, ...] = ()) -> Path:
    """Write `hinted.smk` into the workflow's folder."""
    hints = save(folder.parent, *rules)
    command = ["emit", str(hints), "--workflow-engine", "snakemake", str(folder / "Snakefile")]
    assert main([*command, "-o", str(folder / "hinted.smk"), "--force", *more]) == 0
    return folder / "hinted.smk"


def snakemake(folder: Path, *arguments: str) -> str:
    """Run Snakemake; return its standard output and error."""
    pytest.importorskip("snakemake")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-c", "2", *arguments], cwd=folder, text=True,
        capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.engine
def test_outputs_are_identical_and_directories_tagged_before(tmp_path: Path) -> None:
    if shutil.which("setfattr") is None:
        pytest.skip("attr is not installed")
    plain, hinted = workflow(tmp_path / "plain"), workflow(tmp_path / "hinted")
    snakemake(plain)
    emitted(hinted, *RULES)
    snakemake(hinted, "-s", "hinted.smk")
    for name in ("raw/all.txt", "out/sum.txt", *(f"squares/s_{i}.txt" for i in range(3))):
        assert (hinted / name).read_bytes() == (plain / name).read_bytes()
    assert os.getxattr(hinted / "parts", "user.DP") == b"local"
    assert os.getxattr(hinted / "squares", "user.DP") == b"collocation|sum"
    assert os.getxattr(hinted / "raw", "user.Replication") == b"3"
    assert os.listxattr(plain / "parts") == []
    for i in range(3):  # the attribute that the job read while it ran
        assert (hinted / f"dp_{i}.log").read_text() == "collocation|sum"


@pytest.mark.slow
@pytest.mark.engine
def test_flags_and_groups_reach_snakemakes_rules(tmp_path: Path) -> None:
    folder = workflow(tmp_path / "w")
    lifetime = rule(
        "parts/p_{n}.txt",
        id="x",
        producer="cut",
        consumers=(),
        pattern="",
        hints=(Hint("Lifetime", "temporary|square", "any", Formula(), "advisory"),),
        examples=("parts/p_0.txt",),
    )
    main_file = emitted(folder, *RULES, lifetime, more=("--temporary",))
    main_file.write_text(main_file.read_text() + DUMP)
    said = snakemake(folder, "-s", "hinted.smk", "-n")
    assert "FLAG cut raw/all.txt ['access_pattern=multi']" in said
    assert "FLAG square parts/p_{i}.txt ['access_pattern=sequential']" in said
    assert "FLAG cut parts/p_{i}.txt ['temp=True']" in said
    assert "FLAG sum squares/s_1.txt ['access_pattern=sequential']" in said, (
        "a name not seen before"
    )
    assert "FLAG sum squares/s_3.txt []" not in said
    assert "GROUP cut None" in said, "groups are made when the jobs are known"


def test_temp_is_written_only_on_request(tmp_path: Path) -> None:
    folder = workflow(tmp_path / "w")
    one = rule(
        "parts/p_{n}.txt",
        producer="cut",
        pattern="pipeline",
        examples=("parts/p_0.txt",),
        hints=(Hint("Lifetime", "temporary", "any", Formula(), "advisory"),),
    )
    for more, count in (((), 0), (("--temporary",), 1)):
        emitted(folder, one, more=more)
        data = json.loads((folder / "hinted.smk.tracehint" / "hints.json").read_text())
        assert len(data["temporary"]) == count


def test_hostile_names_stay_data(tmp_path: Path) -> None:
    folder = workflow(tmp_path / "w")
    clean = emitted(folder, *RULES).read_bytes()
    annotate = (folder / "hinted.smk.tracehint" / "annotate.smk").read_bytes()
    evil = [
        literal(n, producer=f"p{i}", DP="local", id=f"e{i}", consumers=(repr(n),))
        for i, n in enumerate(HOSTILE_NAMES)
    ]
    assert emitted(folder, *RULES, *evil).read_bytes() == clean
    assert (folder / "hinted.smk.tracehint" / "annotate.smk").read_bytes() == annotate


def test_the_users_file_name_is_a_plain_literal(tmp_path: Path) -> None:
    folder = tmp_path / "a'b\n\"é"
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE)
    hints = save(tmp_path, *RULES)
    out = tmp_path / "h.smk"
    command = ["emit", str(hints), "--workflow-engine", "snakemake", str(folder / "Snakefile")]
    assert main([*command, "-o", str(out)]) == 0
    lines = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 9
    literal_text = re.fullmatch(
        r"workflow\.include\((.*), overwrite_default_target=True\)", lines[3]
    )
    assert literal_text
    assert literal_text[1].isascii()
    assert ast.literal_eval(literal_text[1]) == f"{folder.name}/Snakefile"


DAMAGE = {
    "no folder": lambda folder: shutil.rmtree(folder),
    "no hints": lambda folder: (folder / "hints.json").unlink(),
    "no JSON": lambda folder: (folder / "hints.json").write_text("{"),
    "no lists": lambda folder: (folder / "hints.json").write_text('{"inputs": 5}'),
    "odd entries": lambda folder: (folder / "hints.json").write_text(
        '{"inputs": [{}], "temporary": [7], "pairs": 3, "parts": {}, "nodes": {"0": 7}, '
        '"cores": "x", "minutes": [], "directories": 1}'
    ),
    "no Python": lambda folder: (folder / "annotate.smk").write_text("1 +\n"),
    "an old Snakemake": lambda folder: (folder / "annotate.smk").write_text(
        (folder / "annotate.smk").read_text().replace("get_path_or_uri", "get_nothing")
    ),
}
# Full runs only: unreadable hints, like those with odd entries; and code that cannot be included.
UNREAD = ("no hints", "no JSON", "no lists", "no Python")


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize(
    "damage", [pytest.param(d, marks=[pytest.mark.full] * (d in UNREAD)) for d in DAMAGE]
)
def test_a_workflow_runs_whatever_is_wrong_with_our_part(tmp_path: Path, damage: str) -> None:
    folder = workflow(tmp_path / "w")
    out = emitted(folder, *RULES)
    DAMAGE[damage](Path(f"{out}.tracehint"))
    said = snakemake(folder, "-s", "hinted.smk", "--quiet", "all")
    assert (folder / "out" / "sum.txt").read_text().split()[:3] == ["1", "4", "9"]
    assert "tracehint: left out: " in said


@pytest.mark.full
@pytest.mark.engine
@pytest.mark.parametrize("version", SNAKEMAKES)
def test_other_snakemakes_run_the_hinted_workflow(tmp_path: Path, version: str) -> None:
    """The oldest and newest 8 and the oldest installable 9; other tests use the newest version."""
    program = engine(f"snakemake-{version}/bin/snakemake")
    plain, hinted = workflow(tmp_path / "plain"), workflow(tmp_path / "hinted")
    emitted(hinted, *RULES)
    for arguments in (["-n"], ["--quiet", "all"]):
        done = subprocess.run(
            [program, "-c", "2", "-s", "hinted.smk", *arguments],
            cwd=hinted, text=True, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip  # a table
        assert done.returncode == 0, done.stderr
    subprocess.run(
        [program, "-c", "2"], cwd=plain, check=True, capture_output=True, timeout=PATIENCE_S
    )
    for name in ("raw/all.txt", "out/sum.txt", *(f"squares/s_{i}.txt" for i in range(3))):
        assert (hinted / name).read_bytes() == (plain / name).read_bytes()
    assert os.getxattr(hinted / "squares", "user.DP") == b"collocation|sum"
    told = [line for line in done.stderr.splitlines() if line.startswith("tracehint: ")]
    assert len(told) == 1
    assert "access patterns" in told[0]  # they need Snakemake 9.1


# Nextflow -------------------------------------------------------------------------------------


def config(*rules: Rule, store: str = "xattr") -> str:
    """Return the text of the emitted configuration."""
    request = EmitRequest(engine="nextflow", workflow=None, store=open_store(store), output=None)
    (text,) = emit(hint_file(*rules), request).files.values()
    return text.decode()


def check_config(text: str) -> dict[str, list[str]]:
    """Parse the configuration strictly; map process names to directives."""
    blocks: dict[str, list[str]] = {}
    body = [line for line in text.splitlines() if line and not line.startswith("//")]
    if not body:  # Nextflow refuses an empty block
        return {}
    assert body[0] == "process {"
    assert body[-1] == "}" and len(body) > 2
    name = ""
    for line in body[1:-1]:
        if found := re.fullmatch(r"    withName: '([A-Za-z0-9_:]+)' \{", line):
            name = found[1]
            blocks[name] = []
        elif line != "    }":
            words = "beforeScript|stageInMode|stageOutMode|scratch"
            assert re.fullmatch(rf"        (?:{words}) = (?:'[A-Za-z0-9_./ ;|-]*'|true)", line)
            blocks[name].append(line.strip())
    return blocks


def test_nextflow_directories_and_readers() -> None:
    blocks = check_config(config(*RULES))
    assert len(blocks["cut"]) == 1, "a broadcast that each task reads once is not copied"
    value = b"local".hex()
    assert blocks["cut"][0] == f"beforeScript = 'setfattr -n user.DP -v 0x{value} . || true'"
    assert b"collocation|sum".hex() in blocks["square"][0]


AGAIN = Hint("CacheSize", "4096", "any", Formula(), "advisory")
GONE = Hint("Lifetime", "temporary", "any", Formula(), "advisory")
LOCAL = Hint("DP", "local", "create")


def gaps_of(*rules: Rule) -> set[str]:
    """Return the hints that are reported as not expressible, with reasons."""
    request = EmitRequest(engine="nextflow", workflow=None, store=open_store("xattr"), output=None)
    return {f"{gap.hint}: {gap.reason}" for gap in emit(hint_file(*rules), request).gaps}


def test_nextflow_sets_no_semantics_without_the_number_of_copies() -> None:
    """The number depends on the size of the run, so a directory cannot have it."""
    scaled = Hint("Replication", "2", "create", Formula(fn="replicas", per=3))
    plain = Hint("ReplicationSemantics", "optimistic", "create")
    shared = rule("{hash}/table", producer="cut", hints=(scaled, plain))
    assert "cut" not in check_config(config(shared))
    assert {gap.partition(":")[0] for gap in gaps_of(shared)} >= {
        "Replication",
        "ReplicationSemantics",
    }
    fixed = rule("{hash}/table", producer="cut", Replication=2, ReplicationSemantics="optimistic")
    (line,) = check_config(config(fixed))["cut"]
    assert "user.Replication " in line and "user.ReplicationSemantics " in line


def test_nextflow_copies_inputs_only_where_all_are_read_again() -> None:
    table = rule("table.bin", producer="make", consumers=("cut",), hints=(AGAIN,))
    once = rule("big.bin", producer="make", consumers=("cut",), DP="local")
    blocks = check_config(config(table))
    assert blocks["cut"] == ["stageInMode = 'copy'", "scratch = true", "stageOutMode = 'copy'"]
    assert "cut" not in check_config(config(table, once))
    assert any(
        "stageInMode: process cut reads other inputs once" in gap for gap in gaps_of(table, once)
    )


def test_nextflow_keeps_undeclared_temporaries_off_the_store() -> None:
    inner = rule("{hash}/tmp_{n}", producer="cut", consumers=("cut",), hints=(GONE,))
    assert check_config(config(inner))["cut"] == ["scratch = true", "stageOutMode = 'copy'"]
    shared = rule("{hash}/tmp_{n}", producer="cut", consumers=("other",), hints=(GONE,))
    assert check_config(config(shared)) == {}


def test_nextflow_lists_what_it_does_not_say() -> None:
    scaled = rule("a_{n}", producer="p", consumers=("q",), hints=(
        Hint("Replication", "3", "create", Formula(fn="replicas", per=3)),))  # fmt: skip  # a table
    unsure = rule("b_{n}", producer="p", conditions=Conditions(needs="use"), DP="local")
    said = gaps_of(scaled, unsure, *RULES)
    assert any(gap.startswith("Replication: its value depends") for gap in said)
    assert "pipeline: the name alone does not show it" in said
    assert any("no directive for where" in gap for gap in said)


def test_what_is_not_said_stands_in_the_head_of_the_file(tmp_path: Path) -> None:
    unsure = rule("b_{n}", producer="p", conditions=Conditions(needs="use"), DP="local")
    said = [line for line in config(unsure, *RULES).splitlines() if "not expressible: " in line]
    assert "// not expressible: pipeline: the name alone does not show it" in said
    assert any("no directive for where" in line for line in said)
    head = emitted(workflow(tmp_path / "w"), rule("a{n}", DP="local"), *RULES).read_text()
    mixed = rule("parts/q_{n}.txt", producer="cut", Replication=2, examples=("parts/q_0.txt",))
    text = emitted(tmp_path / "w", *RULES, mixed).read_text()
    told = [line for line in text.splitlines() if line.startswith("# not expressible: ")]
    assert told and "directory differ" in told[0]
    assert all(line.startswith("#") for line in head.splitlines()[:1])


def test_nextflow_leaves_what_the_pipeline_says_itself(tmp_path: Path) -> None:
    (tmp_path / "main.nf").write_text("process cut { beforeScript 'module load x' }\n")
    (tmp_path / ".nextflow").mkdir()
    (tmp_path / ".nextflow" / "x.config").write_text("scratch = true\n")
    hints = save(tmp_path, rule("a", producer="cut", DP="local"), *RULES)
    out = tmp_path / "h.config"
    command = ["emit", str(hints), "--workflow-engine", "nextflow", "-o", str(out)]
    assert main(command) == 0
    assert "beforeScript" in out.read_text()
    assert main([*command, "--force", str(tmp_path / "main.nf")]) == 0
    assert "beforeScript =" not in out.read_text()
    assert main([*command, "--force", str(tmp_path / "none.nf")]) == 2
    assert main([*command, "--force", "--local-dir", "/a b"]) == 2


def test_nextflow_outputs_that_differ_give_no_default() -> None:
    text = config(
        rule("a_{n}", producer="p", DP="local"), rule("b_{n}", producer="p", DP="scatter|4")
    )
    assert "beforeScript" not in text


def test_nextflow_hostile_names() -> None:
    rules = [
        literal(n, producer=repr(n), DP="local", id=f"e{i}\n}}", consumers=(f"x'{i}",))
        for i, n in enumerate(HOSTILE_NAMES)
    ]
    assert check_config(config(*rules)) == {}
