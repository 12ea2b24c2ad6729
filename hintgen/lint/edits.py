"""Fixes as lines that a user can copy into the workflow file, for each engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.lint.finding import Finding

# rule -> kind of edit
EDIT_KINDS = {
    "TP001": "copies",
    "TP002": "together",
    "TP003": "together",
    "TD001": "input",
    "TD002": "output",
    "TD003": "drop",
}


def edit_of(
    finding: Finding,
    engine: str,
    *,
    staging: bool,
    near: Sequence[str] = (),
    nodes: Mapping[str, str] = {},
) -> str:
    """Return the lines; empty if the engine is unknown or has no such edit. `near`: task types to
    run on one node; `nodes`: as from nodes_of; `staging`: the store keeps no files on nodes."""
    kind = EDIT_KINDS.get(finding.code, "")
    place = _NODE_EDITS.get(engine if not staging or engine in _GROUPING_ENGINES else "")
    if kind == "together" and place is not None:
        return place(near or types_of(finding.producers) + types_of(finding.consumers), nodes)
    edits = _EDITS.get(engine, {})
    edit = (edits.get(f"{kind} staged") if staging else None) or edits.get(kind)
    return edit(finding) if edit else ""


def engine_of(analysis: Analysis) -> str:
    """Return the engine of the run from its command, else from the types of its engine tasks."""
    command = analysis.run.get("command") or [""]
    tasks = analysis.tasks
    names = [PurePath(command[0]).name]
    for name, engine in zip(
        tasks.column("type").to_pylist(), tasks.column("engine").to_pylist(), strict=True
    ):
        if engine and name not in names:
            names.append(name)
    return next((name for name in names if name in _EDITS), "")


def nodes_of(analysis: Analysis) -> dict[str, str]:
    """Map each task type to the node that ran most of its tasks; empty if the run had one host."""
    tasks = analysis.tasks
    if len(analysis.run.get("hosts") or []) < 2:
        return {}
    counted = tasks.group_by(["type", "host"]).aggregate([([], "count_all")])
    counted = counted.sort_by([("count_all", "ascending"), ("host", "descending")])
    return dict(zip(counted["type"].to_pylist(), counted["host"].to_pylist(), strict=True))


def types_of(text: str) -> list[str]:
    """Split the comma-separated task types of a finding."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _paths(finding: Finding) -> list[str]:
    """Return up to three example paths as text for a workflow file."""
    return [path.decode("utf-8", "backslashreplace") for path in finding.examples[:3]]


def _quote_paths(finding: Finding) -> str:
    texts = ['"' + p.replace("\\", "\\\\").replace('"', '\\"') + '"' for p in _paths(finding)]
    more = finding.files - len(texts)
    return ", ".join(texts) + (f"  # and {plural(more, 'more file')}" if more > 0 else "")


def _snakemake(keyword: str) -> Callable[[Finding], str]:
    def edit(f: Finding) -> str:
        names = types_of(f.producers if keyword == "output" else f.consumers)
        return "\n".join(f"rule {name}:\n    {keyword}: {_quote_paths(f)}" for name in names)

    return edit


def _snakemake_group(names: Sequence[str], _nodes: Mapping[str, str]) -> str:
    group = "-".join(names[:4])
    return "\n".join(f'rule {name}:\n    group: "{group}"' for name in names)


def _snakemake_copies(f: Finding) -> str:
    paths, mark, more = _quote_paths(f).partition("  # and ")
    return "\n".join(
        f"rule {name}:\n    input: access.multi({paths}){mark}{more}"
        for name in types_of(f.consumers)
    )


def _snakemake_drop(f: Finding) -> str:
    names = types_of(f.consumers)
    return "\n".join(f"rule {name}:\n    input:  # remove {_quote_paths(f)}" for name in names)


def _nextflow_hint(attribute: str, value: str) -> Callable[[Finding], str]:
    def edit(f: Finding) -> str:
        names = "|".join(types_of(f.producers))
        call = f"setfattr -n user.{attribute} -v {value} . || true"
        line = f"process {{ withName: '{names}' {{ beforeScript = '{call}' }} }}"
        return f"// nextflow.config\n{line}" if names else ""

    return edit


def _nextflow_scratch(mode: str) -> Callable[[Finding], str]:
    """Return the edit to run tasks in node-local storage; `mode`: how inputs are staged there."""

    def edit(f: Finding) -> str:
        names = "|".join(types_of(f.consumers if mode else f.producers))
        line = f"process {{ withName: '{names}' {{ scratch = true{mode} }} }}"
        return f"// nextflow.config\n{line}" if names else ""

    return edit


def _nextflow(keyword: str) -> Callable[[Finding], str]:
    def edit(f: Finding) -> str:
        names = types_of(f.producers if keyword == "output" else f.consumers)
        lines = "\n".join(f"    path '{PurePath(path).name}'" for path in _paths(f))
        return "\n".join(f"process {name} {{\n    {keyword}:\n{lines}\n}}" for name in names)

    return edit


def _nextflow_drop(f: Finding) -> str:
    names = types_of(f.consumers)
    return "\n".join(f"process {name} {{ input:  // remove {_quote_paths(f)}\n}}" for name in names)


def _rule_line(f: Finding) -> str:
    """Return a rule of Makeflow or make with the files after the colon."""
    return f"{_format_heading(f, 'add to the inputs')}\n... : ... {' '.join(_paths(f))}"


def _rule_drop(f: Finding) -> str:
    return f"{_format_heading(f, 'remove from the inputs')}\n{' '.join(_paths(f))}"


def _format_heading(f: Finding, change: str) -> str:
    more = f.files - len(_paths(f))
    rest = f" (and {plural(more, 'more file')})" if more > 0 else ""
    return f"# rules of {', '.join(types_of(f.consumers))}: {change}{rest}"


def _makeflow_node(names: Sequence[str], nodes: Mapping[str, str]) -> str:
    """Return the variable that places batch jobs, on a node that ran these tasks if known."""
    node = next((nodes[name] for name in names if name in nodes), "")
    which = "" if node else " of those that `sinfo -N` lists, with `makeflow -T slurm`"
    head = f"# before the rules of {', '.join(names)}: one node{which}"
    return f'{head}\nBATCH_OPTIONS="--nodelist={node or "NODE"}"'


_GROUPING_ENGINES = ("snakemake",)  # engines that run the tasks of a group in one job, on any store
# engine -> lines that run tasks of these types on one node
_NODE_EDITS: dict[str, Callable[[Sequence[str], Mapping[str, str]], str]] = {
    "snakemake": _snakemake_group,
    "makeflow": _makeflow_node,
}
# engine -> kind of edit -> lines
_EDITS: dict[str, dict[str, Callable[[Finding], str]]] = {
    "snakemake": {
        "copies": _snakemake_copies,
        "input": _snakemake("input"),
        "output": _snakemake("output"),
        "drop": _snakemake_drop,
    },
    "nextflow": {
        "together": _nextflow_hint("DP", "local"),
        "copies": _nextflow_hint("Replication", "2"),
        "together staged": _nextflow_scratch(""),
        "copies staged": _nextflow_scratch("; stageInMode = 'copy'"),
        "input": _nextflow("input"),
        "output": _nextflow("output"),
        "drop": _nextflow_drop,
    },
    "makeflow": {"input": _rule_line, "drop": _rule_drop},
    "make": {"input": _rule_line, "drop": _rule_drop},
}
