"""Actions on the report's first screen: at most three, with lines for the engine's own file."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support.big import chains
from tracehint.hintgen.gain import Baseline, Gain
from tracehint.hintgen.lint.edits import nodes_of
from tracehint.hintgen.lint.finding import Finding, Savings
from tracehint.hintgen.report.actions import CORRECTNESS, MAX_ACTIONS, actions
from tracehint.hintgen.report.screen import headline

BASE = Baseline("mine", 4, 10.0, 100 << 20)
MUCH = Gain(2.0, 1.0, 3.0, 50 << 20, True)
LITTLE = Gain(0.1, -0.5, 0.7, 1 << 20, False)


def finding(code: str, template: str, flow: str, gain: Gain | None = None) -> Finding:
    producers, _, consumers = flow.partition(">")
    return Finding(
        code, "name", "warning", "message", template, 2, 10 << 20, Savings(), 1.0, "fix",
        examples=(template.replace("*", "1").encode(),), producers=producers, consumers=consumers,
        gain=gain,
    )  # fmt: skip  # a table


LOCAL = finding("TP003", "trim/*.fq", "trim>align", MUCH)


def test_a_gain_inside_its_uncertainty_is_no_action() -> None:
    assert not actions([finding("TP003", "a", "x>y", LITTLE)], BASE, "snakemake")
    assert not actions([LOCAL], None, "snakemake")  # nothing was simulated


def test_a_wrong_declaration_is_among_three_however_many_gains_there_are() -> None:
    gains = [finding("TP003", f"a{k}", f"x{k}>y{k}", MUCH) for k in range(5)]
    found = actions([*gains, finding("TD001", "conf.txt", ">y1")], BASE, "")
    assert len(found) == MAX_ACTIONS
    assert [action.saves == CORRECTNESS for action in found] == [False, False, True]
    assert found[0].saves == MUCH.text(BASE)
    assert not any(action.edit for action in found)  # the engine is unknown


def test_rules_that_share_a_node_are_one_group_whose_lines_are_printed_once() -> None:
    found = actions([LOCAL, finding("TP003", "b/*.bam", "align>count", MUCH)], BASE, "snakemake")
    group = '    group: "trim-align-count"'
    rules = [f"rule {name}:\n{group}" for name in ("trim", "align", "count")]
    assert [action.edit for action in found] == ["\n".join(rules), ""]


def test_a_file_that_several_rules_do_not_declare_is_one_action() -> None:
    wrong = [finding("TD001", "tools.py", f">{name}") for name in ("trim", "align")]
    (action,) = actions(wrong, None, "snakemake")
    assert "tools.py as input of trim, align" in action.text
    assert action.edit.count('input: "tools.py"') == 2


@pytest.mark.parametrize(
    ("engine", "code", "lines"),
    [
        ("nextflow", "TP003", ["// nextflow.config",
            "process { withName: 'trim' { beforeScript = "
            "'setfattr -n user.DP -v local . || true' } }"]),
        ("nextflow", "TD001", ["process align {", "    input:", "    path '1.fq'", "}"]),
        ("makeflow", "TP003", ["# before the rules of trim, align: one node"
            " of those that `sinfo -N` lists, with `makeflow -T slurm`",
            'BATCH_OPTIONS="--nodelist=NODE"']),
        ("makeflow", "TD001", ["# rules of align: add to the inputs (and 1 more file)",
            "... : ... trim/1.fq"]),
        ("make", "TD003", ["# rules of align: remove from the inputs (and 1 more file)",
            "trim/1.fq"]),
        ("snakemake", "TP001", ["rule align:", '    input: access.multi("trim/1.fq")'
            "  # and 1 more file"]),
        ("sh", "TP003", []),
        ("nextflow on NFS", "TP003", ["// nextflow.config",
            "process { withName: 'trim' { scratch = true } }"]),
        ("nextflow on NFS", "TP001", ["// nextflow.config",
            "process { withName: 'align' { scratch = true; stageInMode = 'copy' } }"]),
        ("makeflow on NFS", "TP003", []),  # its plan is emitted for Slurm
        ("snakemake on NFS", "TP003", ["rule trim:", '    group: "trim-align"', "rule align:",
            '    group: "trim-align"']),
    ],
)  # fmt: skip  # a table
def test_lines_for_the_file_of_each_engine(engine: str, code: str, lines: list[str]) -> None:
    name, _, store = engine.partition(" on ")
    own = [finding(code, "trim/*.fq", "trim>align", MUCH)]
    (action,) = actions(own, BASE, name, staging=store == "NFS")
    assert action.as_dict()["edit"] == lines


@pytest.mark.parametrize(("hosts", "node"), [(("n1", "n2", "n2", "n1"), "n2"), (("n1",) * 4, "")])
def test_makeflow_s_node_is_the_one_that_ran_most_of_the_tasks(
    hosts: tuple[str, ...], node: str
) -> None:
    analysis = chains(1, 4)
    tasks = pa.table({"type": ["trim", "trim", "trim", "align"], "host": hosts})
    run = analysis.run | {"hosts": sorted(set(hosts))}
    nodes = nodes_of(replace(analysis, run=run, tasks=tasks))
    (action,) = actions([LOCAL], BASE, "makeflow", nodes=nodes)
    assert f'--nodelist={node or "NODE"}"' in action.edit
    assert ("sinfo" in action.edit) == (not node)


@pytest.mark.parametrize(
    ("command", "width", "shown"),
    [
        ("makeflow -T local -j 2 m.mf", 67, "makeflow -T local -j 2 m.mf"),
        ("makeflow -T local -j 2 m.mf", 66, "makeflow … local -j 2 m.mf"),
        ("makeflow -T local " + "x" * 90, 60, "makefl…xxx"),
        ("sh", 1, "sh"),
    ],
)
def test_a_command_that_is_too_long_loses_whole_words(command: str, width: int, shown: str) -> None:
    analysis = chains(1, 4)
    line = headline(replace(analysis, run=analysis.run | {"command": command.split()}), width)
    head, _, rest = line.partition(": ")
    assert head.startswith(shown), line
    assert rest.startswith("4 tasks"), line
