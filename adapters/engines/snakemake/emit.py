"""Snakemake: a Snakefile that includes the user's and annotates its rules.

It adds access patterns of inputs, groups for pipelines and for the parts of a plan, and directory
defaults before every shell command (Snakemake deletes outputs before a job starts: files cannot be
tagged beforehand). Groups are formed once Snakemake knows its jobs, so none can wait for itself.
temp() deletes files, so it is written only on request.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of, slurm_options
from tracehint.adapters.engines.tag_table import TagTarget, check_folder_name, encode, tag_files
from tracehint.adapters.paths import Paths, remembered_paths
from tracehint.adapters.plan import build_plan
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.analyzer.catalogue import asking_for
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile, Plan, Rule
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import HOLES, parse
from tracehint.hintgen.text.escape import comment
from tracehint.schemas.wording import plural
from tracehint.version import __version__

MULTI = asking_for("replication")
# keeps the workflow's own basedir; {0} is relative to this file, or absolute
_BASE = """\
import pathlib as _paths
_tracehint_base = str((_paths.Path(workflow.basedir) / {0!a}).resolve())
type(workflow).basedir = property(lambda _, base=_tracehint_base: base)
"""
SNIPPET = Path(__file__).with_name("annotate.smk")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the including Snakefile and its folder."""
    if request.workflow is None:
        raise UsageError(
            "no workflow given",
            "Add the Snakefile: tracehint emit H.json --workflow-engine snakemake Snakefile -o F",
        )
    # next to the workflow, where Snakemake searches its profile
    output = request.output or request.workflow.with_name(f"{request.workflow.name}.hinted")
    check_folder_name(output.name)
    folder = Path(f"{output}.tracehint")
    plan = build_plan(hints, Paths(files=remembered_paths(hints)), nodes=request.nodes)
    directories = [
        TagTarget(path=t.path, kind="D", hints=dict(t.hints))
        for t in plan.targets
        if t.kind == "directory"
    ]
    table, gaps, count = encode([directories], request.store, allow_trusted=request.allow_trusted)
    why = "files of this directory differ, and Snakemake deletes tagged outputs"
    gaps += [Gap(hint=name, level="none", reason=why) for _, name in plan.conflicts]
    data = job_notes(hints.rules, temporary=request.temporary)
    data |= planned_notes(hints.plan, request.hosts)
    data["directories"] = count
    files: dict[Path | None, bytes] = {
        output: _snakefile(request.workflow, output, folder, gaps).encode(),
        folder / "annotate.smk": SNIPPET.read_bytes(),
        folder / "hints.json": (json.dumps(data, indent=1) + "\n").encode(),
    }
    files.update(tag_files(folder, table))
    written = (
        f"Wrote {plural(len(data['inputs']), 'access-pattern flag')}, "
        f"{plural(len(data['pairs']), 'job group')}, {plural(len(data['parts']), 'job part')}, "
        f"{plural(count, 'directory default')}. Run: snakemake -s {output.name} ..."
    )
    return Emitted(
        files=files,
        executable={folder / "tag", folder / "helper"},
        gaps=merge_gaps(gaps),
        remarks=[written, *_warn_of_profile(request.workflow, output), *plan.remarks()],
    )


def _warn_of_profile(workflow: Path, output: Path) -> list[str]:
    """Warn that Snakemake does not find the workflow's profile from another folder."""
    profile = workflow.resolve().parent / "profiles" / "default"
    if output.resolve().parent == workflow.resolve().parent or not profile.is_dir():
        return []
    name = workflow.with_name(output.name)
    return [
        f"Snakemake finds the profile {profile} only from the workflow's folder: give it as "
        f"--workflow-profile, or write -o {name}"
    ]


def _snakefile(workflow: Path, output: Path, folder: Path, gaps: Iterable[Gap]) -> str:
    """Return fixed text with names; the user's names are ASCII-only Python literals.

    A plain `include:` would leave the workflow without its default target. From another folder,
    `workflow.basedir` lets the workflow find its own files.
    """
    here, home = output.resolve().parent, workflow.resolve().parent
    target = os.path.relpath(workflow.resolve(), here) if here in home.parents else None
    target = workflow.name if here == home else target or str(workflow.resolve())
    base = "" if here == home else _BASE.format(str(Path(target).parent))
    flags = "".join(
        f"# not expressible: {comment(f'{gap.hint}: {gap.reason}')}\n" for gap in merge_gaps(gaps)
    )
    return (
        f"# tracehint {__version__}: the workflow below with annotations; snakemake -s THIS-FILE\n"
        f"{flags}{base}"
        f"workflow.include({target!a}, overwrite_default_target=True)\n"
        f"_tracehint = {folder.name + '/annotate.smk'!a}\n"
        "try:\n"
        "    workflow.include(_tracehint)\n"
        "except Exception as _error:  # a hint is advice\n"
        '    print(f"tracehint: left out: all hints ({_error})", file=__import__("sys").stderr)\n'
    )


def job_notes(rules: Iterable[Rule], *, temporary: bool = False) -> dict[str, Any]:
    """Return the data for annotate.smk; rule names are task types, paths are learned examples.

    inputs, temporary: files by the rule that uses them, with their producers, the pattern of their
    names, and recorded names. pairs: producer and only consumer of pipeline files.
    """
    inputs: list[dict[str, Any]] = []
    gone: list[dict[str, Any]] = []
    pairs: dict[tuple[str, str], None] = {}
    for rule in rules:
        if rule.conditions.needs:  # a general fallback of the rules for recorded names
            continue
        values = {hint.name: hint.value for hint in rule.hints}
        producers = [name for name in rule.producers if name]
        files = {"producers": producers, "regex": text_regex(rule), "paths": _examples(rule)}
        access = "multi" if rule.pattern in MULTI else values.get("Access", "sequential")
        inputs += [{"rule": c, **files, "access": access} for c in rule.consumers]
        if temporary and values.get("Lifetime", "").startswith("temporary"):
            gone += [{"rule": p, **files, "producers": []} for p in producers]
        if rule.pattern == "pipeline" and rule.producer and len(rule.consumers) == 1:
            pairs[rule.producer, rule.consumers[0]] = None
    return {"inputs": inputs, "temporary": gone, "pairs": [list(pair) for pair in pairs]}


def text_regex(rule: Rule) -> str:
    """Return the template as a regex for names as text; empty if a name is not UTF-8.

    The rule's own regex is for bytes decoded as Latin-1.
    """
    out = []
    for part in parse(rule.template).parts:
        if isinstance(part, str):
            out.append(f"(?:{HOLES[part].regex})")
            continue
        try:
            out.append(re.escape(part.decode("utf-8")))
        except UnicodeDecodeError:
            return ""
    return "".join(out)


def planned_notes(plan: Plan | None, hosts: Path | None) -> dict[str, Any]:
    """Return the part of each planned output, sbatch options by part, the cores that a group may
    use at one time, and its time limit in minutes (0: no more than a job requests)."""
    if plan is None or not plan.tasks:
        return {"parts": {}, "nodes": {}, "cores": 1, "minutes": 0}
    nodes = nodes_of(plan, hosts)
    return {
        "parts": {task.name: task.part for task in plan.tasks},
        "nodes": {str(part): " ".join(slurm_options(host)) for part, host in nodes.items()},
        "cores": max(1, min((host.slots for host in nodes.values()), default=1)),
        "minutes": min((host.minutes for host in nodes.values()), default=0),
    }


def _examples(rule: Rule) -> list[str]:
    """Return learned paths as text; paths that are not UTF-8 cannot be named in a Snakefile."""
    found = []
    for text in (*rule.examples, *list(rule.per_file)[:5]):
        try:
            found.append(to_bytes(text).decode("utf-8"))
        except (InputError, UnicodeDecodeError):
            continue
    return list(dict.fromkeys(found))
