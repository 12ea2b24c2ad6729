"""Nextflow: a configuration file for `nextflow run -c F`.

Every task has a work directory of its own in which its outputs are created, so the hint of a
process's outputs becomes the default of that directory, set by `beforeScript`. Inputs are copied to
the node (`stageInMode`) only for a process that reads each of them more than once; files that only
their own task sees, and deletes, are kept off the store by `scratch`. Attribute values are written
in hexadecimal, names of processes pass an allow-list. What cannot be said is a gap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.nextflow_own import DIRECTIVES, own_directives
from tracehint.adapters.engines.nextflow_parts import directives
from tracehint.adapters.engines.planned import nodes_of
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.text.escape import comment
from tracehint.version import __version__

PROCESS = re.compile(r"[A-Za-z_][A-Za-z0-9_:]{0,200}")
AGAIN = "CacheSize"  # the hint of files that a task reads more than once
# outputs are copied out of the scratch directory, not moved: a copy is made in the tagged directory
SCRATCH = ("scratch = {local}", "stageOutMode = 'copy'")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The configuration, to -o or standard output."""
    blocks: dict[str, list[str]] = {}
    gaps = [
        Gap(hint=rule.pattern or "rule", level="none", reason="the name alone does not tell")
        for rule in hints.rules
        if rule.conditions.get("needs")
    ]
    local = _directory(request.local_dir)
    for name, rules in _by(hints, "producers").items():
        said = _before_script(name, rules, request, gaps)
        blocks.setdefault(name, []).extend([said] if said else [])
        if any(_undeclared(name, rule) for rule in rules):
            blocks[name] += [line.format(local=local) for line in SCRATCH]
    for name, rules in _by(hints, "consumers").items():
        lines = [
            line for line in _staging(name, rules, local, gaps) if line not in blocks.get(name, ())
        ]
        blocks.setdefault(name, []).extend(lines)
    name = request.output.name if request.output else "F"
    remarks = [f"Run: nextflow run -c {name} PIPELINE"]
    if hints.plan is not None and hints.plan.tasks:
        nodes = nodes_of(hints.plan, request.hosts)
        for process, lines in directives(hints.plan, nodes, gaps).items():
            blocks.setdefault(process, []).extend(lines)
        if not nodes:
            remarks.append("With --hosts FILE the tasks also tell the batch system their nodes")
    remarks += _keep_own(blocks, request, gaps)
    body = _config(blocks, gaps)
    text = _head(hints, gaps) + body
    return Emitted(files={request.output: text.encode()}, gaps=merge_gaps(gaps), remarks=remarks)


def _keep_own(blocks: dict[str, list[str]], request: EmitRequest, gaps: list[Gap]) -> list[str]:
    """Take away what the pipeline says itself; without the pipeline, tell what is replaced."""
    written = {line.partition(" ")[0] for lines in blocks.values() for line in lines}
    written &= set(DIRECTIVES)
    if request.workflow is None:
        if not written:
            return []
        return [
            f"{', '.join(sorted(written))} of the named processes are replaced: where the pipeline "
            "has its own, give its main.nf as well, and they stay"
        ]
    own = own_directives(request.workflow)
    for name, lines in blocks.items():
        kept = [line for line in lines if line.partition(" ")[0] not in own]
        gaps += [
            Gap(hint=word, level="none", reason="the pipeline has its own, which stays")
            for word in sorted({line.partition(" ")[0] for line in lines} & own)
        ]
        blocks[name] = kept
    return []


def _by(hints: HintFile, side: str) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in hints.rules:
        if rule.conditions.get("needs"):  # a general rule below the ones for the names seen
            continue
        for name in filter(None, getattr(rule, side)):
            found.setdefault(name, []).append(rule)
    return found


def _directory(path: str) -> str:
    """A Groovy value: the directory, or Nextflow's own choice (TMPDIR of the node)."""
    if not path:
        return "true"
    if not re.fullmatch(r"/[A-Za-z0-9_./+-]*", path):
        raise UsageError(
            f"the directory {path[:80]!r} cannot stand in a configuration",
            "Give --local-dir: absolute, without blanks or quotes.",
        )
    return f"'{path}'"


def _undeclared(name: str, rule: Rule) -> bool:
    """Files that the run deleted and nobody but their own process read."""
    gone = any(h.name == "Lifetime" and h.value.startswith("temporary") for h in rule.hints)
    return gone and set(rule.consumers) <= {name} and set(rule.producers) == {name}


def _staging(name: str, rules: Sequence[Rule], local: str, gaps: list[Gap]) -> list[str]:
    """Copies of the inputs on the node, where each is read more than once there."""
    reads = [rule for rule in rules if set(rule.producers) != {name}]
    again = [rule for rule in reads if any(hint.name == AGAIN for hint in rule.hints)]
    if again and len(again) == len(reads):
        return ["stageInMode = 'copy'", *(line.format(local=local) for line in SCRATCH)]
    if again:
        reason = f"process {comment(name)} reads other inputs once, and they would be copied too"
        gaps.append(Gap(hint="stageInMode", level="none", reason=reason))
    reason = "Nextflow has no directive for where a file's reader runs"
    gaps += [Gap(hint=rule.pattern, level="none", reason=reason) for rule in reads if rule.pattern]
    return []


def _before_script(
    name: str, rules: list[Rule], request: EmitRequest, gaps: list[Gap]
) -> str | None:
    """Tag the work directory with what all files that the process makes have in common."""
    common = _common(rules)
    for rule in rules:
        gaps += [
            Gap(hint=hint.name, level="none", reason="its value follows from the size of the run")
            for hint in rule.hints
            if hint.formula
        ]
        lost = {h.name for h in rule.hints if h.level == "placement" and not h.formula}
        lost -= set(common)
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


def _head(hints: HintFile, gaps: list[Gap]) -> str:
    """The rules, and what of them the configuration cannot say."""
    titles = [f"{rule.id} {rule.pattern}: {rule.template}" for rule in hints.rules]
    titles += [f"not said: {gap.hint}: {gap.reason}" for gap in merge_gaps(gaps)]
    lines = [f"// tracehint {__version__}: hints for Nextflow; nextflow run -c THIS-FILE", ""]
    return "\n".join([*lines, *(f"// {comment(title)}" for title in titles), ""])


def _config(blocks: Mapping[str, list[str]], gaps: list[Gap]) -> str:
    lines = ["process {"]
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
