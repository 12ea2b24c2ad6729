"""Nextflow: a configuration file for `nextflow run -c F`.

Every task has a work directory of its own in which its outputs are created, so the hint of a
process's outputs becomes the default of that directory, set by `beforeScript`. Attribute values are
written in hexadecimal, names of processes pass an allow-list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.nextflow_parts import directives
from tracehint.adapters.engines.planned import nodes_of
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.text.escape import comment
from tracehint.version import __version__

PROCESS = re.compile(r"[A-Za-z_][A-Za-z0-9_:]{0,200}")
# pattern of an input -> directives of the process that reads it
READER: dict[str, tuple[str, ...]] = {"broadcast": ("stageInMode = 'copy'", "scratch = '{local}'")}


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The configuration, to -o or standard output."""
    blocks: dict[str, list[str]] = {}
    gaps: list[Gap] = []
    for name, rules in _by(hints, "producers").items():
        said = _before_script(name, rules, request, gaps)
        if said:
            blocks.setdefault(name, []).append(said)
    for name, rules in _by(hints, "consumers").items():
        for rule in rules:
            for line in READER.get(rule.pattern, ()):
                said = line.replace("{local}", _directory(request.local_dir))
                if said not in blocks.setdefault(name, []):
                    blocks[name].append(said)
    name = request.output.name if request.output else "F"
    remarks = [f"Run: nextflow run -c {name} PIPELINE"]
    if hints.plan is not None and hints.plan.tasks:
        nodes = nodes_of(hints.plan, request.hosts)
        for process, lines in directives(hints.plan, nodes, gaps).items():
            blocks.setdefault(process, []).extend(lines)
        remarks.append(
            "clusterOptions of the planned processes are set here: add your own to the file"
            if nodes
            else "With --hosts FILE the tasks also tell the batch system their nodes"
        )
    text = _config(blocks, hints, gaps)
    return Emitted(files={request.output: text.encode()}, gaps=merge_gaps(gaps), remarks=remarks)


def _by(hints: HintFile, side: str) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in hints.rules:
        if rule.conditions.get("needs"):  # a general rule below the ones for the names seen
            continue
        for name in filter(None, getattr(rule, side)):
            found.setdefault(name, []).append(rule)
    return found


def _directory(path: str) -> str:
    return path if re.fullmatch(r"/[A-Za-z0-9_./+-]*", path) else "true"


def _before_script(
    name: str, rules: list[Rule], request: EmitRequest, gaps: list[Gap]
) -> str | None:
    """Tag the work directory with what all files that the process makes have in common."""
    common = _common(rules)
    for rule in rules:
        lost = {h.name for h in rule.hints if h.level == "placement"} - set(common)
        gaps += [
            Gap(
                hint=hint,
                level="none",
                reason=f"outputs of process {comment(name)} differ, "
                "and they share one work directory",
            )
            for hint in sorted(lost)
        ]
    settings, missing = request.store.translate(common, "directory")
    gaps += missing
    calls = []
    for setting in settings:
        request.store.check_key(setting.key, allow_trusted=request.allow_trusted)
        calls.append(f"setfattr -n {setting.key} -v 0x{setting.value.hex()} . || true")
    return f"beforeScript = '{'; '.join(calls)}'" if calls else None


def _common(rules: list[Rule]) -> Mapping[str, str]:
    """Placement hints with the same constant value in all rules of a process."""
    each = [
        {h.name: h.value for h in rule.hints if h.level == "placement" and not h.formula}
        for rule in rules
    ]
    return {k: v for k, v in each[0].items() if all(other.get(k) == v for other in each[1:])}


def _config(blocks: Mapping[str, list[str]], hints: HintFile, gaps: list[Gap]) -> str:
    lines = [f"// tracehint {__version__}: hints for Nextflow; nextflow run -c THIS-FILE", ""]
    for rule in hints.rules:
        title = f"{rule.id} {rule.pattern}: {rule.template}"
        lines.append(f"// {comment(title)}")
    lines.append("process {")
    for name in sorted(blocks):
        if not blocks[name]:
            continue
        if not PROCESS.fullmatch(name):
            gaps.append(Gap(hint="withName", level="none", reason="a task type is no process name"))
            continue
        lines += [
            f"    withName: '{name}' {{",
            *(f"        {said}" for said in blocks[name]),
            "    }",
        ]
    return "\n".join([*lines, "}"]) + "\n"
