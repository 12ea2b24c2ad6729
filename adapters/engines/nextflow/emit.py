"""Nextflow: a configuration file for `nextflow run -c F`.

Every task creates its outputs in its own work directory, so the hint of a process's outputs becomes
the default of that directory, set by `beforeScript`. Inputs are copied to the node (`stageInMode`)
only for a process that reads each of them more than once; `scratch` keeps files off the store that
only their own task reads and deletes. Attribute values are written in hexadecimal, process names
pass an allow-list. Hints that cannot be expressed are gaps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of, slurm_options
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile, Plan, Rule, TaskPart
from tracehint.hintgen.hints.vocabulary import common_hints
from tracehint.hintgen.text.escape import comment
from tracehint.hintgen.text.textfile import TextFile
from tracehint.version import __version__

PROCESS = re.compile(r"[A-Za-z_][A-Za-z0-9_:]{0,200}")
REREAD_HINT = "CacheSize"  # the hint of files that a task reads more than once
# outputs are copied, not moved, from scratch: a copy is a new file in the tagged directory
SCRATCH = ("scratch = {local}", "stageOutMode = 'copy'")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the configuration, for -o or standard output."""
    blocks: dict[str, list[str]] = {}
    gaps = [
        Gap(hint=rule.pattern or "rule", level="none", reason="the name alone does not show it")
        for rule in hints.rules
        if rule.conditions.needs
    ]
    local = _directory(request.local_dir)
    for name, rules in _group_rules(hints, "producers").items():
        block = _before_script(name, rules, request, gaps)
        blocks.setdefault(name, []).extend([block] if block else [])
        if any(_is_private_temporary(name, rule) for rule in rules):
            blocks[name] += [line.format(local=local) for line in SCRATCH]
    for name, rules in _group_rules(hints, "consumers").items():
        lines = [
            line
            for line in _stage_inputs(name, rules, local, gaps)
            if line not in blocks.get(name, ())
        ]
        blocks.setdefault(name, []).extend(lines)
    name = request.output.name if request.output else "F"
    remarks = [f"Run: nextflow run -c {name} PIPELINE"]
    if hints.plan is not None and hints.plan.tasks:
        nodes = nodes_of(hints.plan, request.hosts)
        for process, lines in directives(hints.plan, nodes, gaps).items():
            blocks.setdefault(process, []).extend(lines)
        if not nodes:
            remarks.append("With --hosts FILE the tasks also pass their nodes to the batch system")
    remarks += _drop_own(blocks, request, gaps)
    body = _config(blocks, gaps)
    text = _head(hints, gaps) + body
    return Emitted(files={request.output: text.encode()}, gaps=merge_gaps(gaps), remarks=remarks)


def _drop_own(blocks: dict[str, list[str]], request: EmitRequest, gaps: list[Gap]) -> list[str]:
    """Drop directives that the pipeline has itself; without the pipeline, list what is replaced."""
    written = {line.partition(" ")[0] for lines in blocks.values() for line in lines}
    written &= set(DIRECTIVES)
    if request.workflow is None:
        if not written:
            return []
        return [
            f"{', '.join(sorted(written))} of the named processes are replaced; to keep those of "
            "the pipeline, give its main.nf too"
        ]
    own = own_directives(request.workflow)
    for name, lines in blocks.items():
        kept = [line for line in lines if line.partition(" ")[0] not in own]
        gaps += [
            Gap(hint=word, level="none", reason="the pipeline sets its own, which is kept")
            for word in sorted({line.partition(" ")[0] for line in lines} & own)
        ]
        blocks[name] = kept
    return []


def _group_rules(hints: HintFile, side: str) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in hints.rules:
        if rule.conditions.needs:  # a general fallback of the rules for recorded names
            continue
        for name in filter(None, getattr(rule, side)):
            found.setdefault(name, []).append(rule)
    return found


def _directory(path: str) -> str:
    """Return a Groovy value: the directory, or Nextflow's default (TMPDIR of the node)."""
    if not path:
        return "true"
    if not re.fullmatch(r"/[A-Za-z0-9_./+-]*", path):
        raise UsageError(
            f"the directory {path[:80]!r} is not allowed in a configuration",
            "Give --local-dir: absolute, without blanks or quotes.",
        )
    return f"'{path}'"


def _is_private_temporary(name: str, rule: Rule) -> bool:
    """Whether the rule's files were deleted in the run and read only by their own process."""
    gone = any(h.name == "Lifetime" and h.value.startswith("temporary") for h in rule.hints)
    return gone and set(rule.consumers) <= {name} and set(rule.producers) == {name}


def _stage_inputs(name: str, rules: Sequence[Rule], local: str, gaps: list[Gap]) -> list[str]:
    """Return directives that copy the inputs to the node, if each is read more than once."""
    reads = [rule for rule in rules if set(rule.producers) != {name}]
    again = [rule for rule in reads if any(hint.name == REREAD_HINT for hint in rule.hints)]
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
    """Tag the work directory with the hints that all files of the process share."""
    common = common_hints([_fixed_hints(rule) for rule in rules])
    for rule in rules:
        gaps += [
            Gap(hint=hint.name, level="none", reason="its value depends on the size of the run")
            for hint in rule.hints
            if hint.formula.fn
        ]
        lost = _fixed_hints(rule).keys() - common.keys()
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


def _fixed_hints(rule: Rule) -> dict[str, str]:
    """Return the placement hints of a rule whose values do not depend on the size of the run."""
    return {h.name: h.value for h in rule.hints if h.level == "placement" and not h.formula.fn}


def _head(hints: HintFile, gaps: list[Gap]) -> str:
    """Return comments with the rules and the hints that the configuration cannot express."""
    titles = [f"{rule.id} {rule.pattern}: {rule.template}" for rule in hints.rules]
    titles += [f"not expressible: {gap.hint}: {gap.reason}" for gap in merge_gaps(gaps)]
    lines = [f"// tracehint {__version__}: hints for Nextflow; nextflow run -c THIS-FILE", ""]
    return "\n".join([*lines, *(f"// {comment(title)}" for title in titles), ""])


def _config(blocks: Mapping[str, list[str]], gaps: list[Gap]) -> str:
    """Return the block of processes, empty without processes: Nextflow rejects an empty block."""
    lines = []
    for name in sorted(blocks):
        if not blocks[name]:
            continue
        if not PROCESS.fullmatch(name):
            gaps.append(
                Gap(hint="withName", level="none", reason="a task type is not a process name")
            )
            continue
        lines += [
            f"    withName: '{name}' {{",
            *(f"        {text}" for text in blocks[name]),
            "    }",
        ]
    return "\n".join(["process {", *lines, "}"]) + "\n" if lines else ""


# Nextflow and a plan: the part of each task, by its tag, as directives of its process.
#
# `ext.tracehint_part` is for user configurations (`task.ext.tracehint_part`); if the nodes are
# known, `clusterOptions` passes them to the batch system. A process without a tag has one task, or
# tasks that are indistinguishable before they start; those run anywhere. (A label set by a
# configuration does not select a `withLabel`, tested with 24.10: so none are set.)
#
# Groovy's compiler limits the code size of a method, so long tables are split into closures.


_NAME = re.compile(r"(.*?)(?: \((.*)\))?", re.DOTALL)
_LITERAL = re.compile(r"[^\\'\x00-\x1f\x7f-\x9f\u2028\u2029]*")
_ROWS = 400  # entries of one closure


def directives(plan: Plan, nodes: Mapping[int, Host], gaps: list[Gap]) -> dict[str, list[str]]:
    """Return the `withName` lines of each process."""
    found: dict[str, dict[str, int]] = {}
    for task in plan.tasks:
        process, tag = _split(task)
        if not _LITERAL.fullmatch(tag):
            reason = "a tag that is not allowed in a configuration"
            gaps.append(Gap(hint="part", level="none", reason=reason))
            continue
        found.setdefault(process, {})[tag] = task.part
    return {process: _lines(tags, nodes) for process, tags in found.items()}


def _split(task: TaskPart) -> tuple[str, str]:
    match = _NAME.fullmatch(task.name)
    assert match is not None  # any text matches
    return match[1], match[2] or ""


def _lines(tags: Mapping[str, int], nodes: Mapping[int, Host]) -> list[str]:
    lines = [f"ext.tracehint_part = {_look_up_tag(tags)}"]
    if nodes:
        words = {tag: f"'{' '.join(slurm_options(nodes[part]))}'" for tag, part in tags.items()}
        lines.append("clusterOptions = " + _look_up_tag(words, " ?: ''"))
    return lines


def _look_up_tag(values: Mapping[str, Any], otherwise: str = "") -> str:
    """Return a Groovy expression for the value of the task's tag, else null or `otherwise`."""
    if values.keys() == {""}:
        return str(values[""])
    rows = sorted(values.items())
    batches = [rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS)]
    tables = ", ".join(f"{{ [{_entries(batch)}] }}" for batch in batches)
    return f"{{ [{tables}].findResult {{ it()[task.tag?.toString()] }}{otherwise} }}"


def _entries(rows: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"'{tag}': {value}" for tag, value in rows)


# Directives that the pipeline's processes or configuration already contain.
#
# A configuration that names a process replaces the directive of the process. So a directive that
# occurs anywhere in the pipeline is left to its author and not written.


DIRECTIVES = ("beforeScript", "stageInMode", "stageOutMode", "scratch", "clusterOptions")
_WORD = re.compile(rb"\b(" + "|".join(DIRECTIVES).encode() + rb")\b")
_FILE = TextFile(kind="a pipeline's file", limit="small-bytes", check="Check the path.")
_RUN_FOLDERS = frozenset({"work", "results"})  # folders of runs; dot folders are skipped too
_MOST = 20_000  # files of one pipeline


def own_directives(pipeline: Path) -> frozenset[str]:
    """Return the directives in the folder of a pipeline or of its script.

    Raises InputError: there is no such file, or there are too many.
    """
    folder = pipeline if pipeline.is_dir() else pipeline.parent
    if not pipeline.exists():
        raise InputError(f"cannot read {pipeline}", "Give the pipeline's main.nf or its folder.")
    found: set[str] = set()
    for path in _files(folder):
        found.update(word.decode() for word in _WORD.findall(_FILE.read(path)))
    return frozenset(found)


def _files(folder: Path) -> Iterator[Path]:
    """Yield scripts and configurations below the folder; links are not followed."""
    count = 0
    for where, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if f not in _RUN_FOLDERS and not f.startswith("."))
        for name in sorted(files):
            path = Path(where, name)
            if path.suffix in (".nf", ".config") and path.is_file():
                count += 1
                if count > _MOST:
                    raise InputError(f"{folder}: more than {_MOST:,} scripts", "Give main.nf.")
                yield path
