"""CWL: the workflow, or an input document, with hints in a namespace of ours; and the plan.

CWL's own hints may be ignored by a runner, and cwltool ignores these (one warning): nothing is
staged, no network is needed, and the document stays valid for every runner. A runner that places
tasks reads `tracehint:Part` of each step, or FILE.plan.json. Given an input document, each File in
it gets the hints of its path. Accepted and run by cwltool 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracehint.adapters.engines import json_emit
from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of
from tracehint.adapters.engines.yaml_edit import (
    child,
    get,
    items,
    node_of,
    put,
    read_node,
    render,
    text_of,
)
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.plan import build_plan
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.plan import Plan
from tracehint.hintgen.text.textfile import TextFile

PREFIX, NAMESPACE = "tracehint", "urn:tracehint:cwl:1#"
_FILE = TextFile(kind="A CWL document", limit="names-bytes", check="Check the path.")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The annotated document, to -o beside it, and the plan."""
    if request.workflow is None:
        raise UsageError(
            "no workflow given",
            "Add it: tracehint emit H.json --workflow-engine cwl w.cwl -o hinted.cwl",
        )
    source = request.workflow
    output = request.output or source.with_name(f"{source.stem}.hinted{source.suffix}")
    if output.resolve().parent != source.resolve().parent:
        raise UsageError(
            f"{output}: relative names in {source.name} hold in its own folder only",
            f"Write it beside: -o {source.with_name(output.name)}",
        )
    top = read_node(_FILE.read(source).decode("utf-8", "replace"), source)
    _declare(top, source)
    processes = _processes(top)
    files: dict[Path | None, bytes] = {}
    if processes:
        told = _annotate(processes, hints, request)
        if hints.plan is not None and hints.plan.tasks:
            path = Path(f"{output}.plan.json")
            files = dict(json_emit.emit(hints, replace(request, output=path)).files)
            told.append(f"{path.name} is the plan for a runner that places tasks")
    else:
        told = [_inputs(top, hints, source)]
    return Emitted(files={output: render(top), **files}, remarks=told)


def _declare(top: Any, source: Path) -> None:
    """Our namespace in the document. Raises InputError: another one has its prefix."""
    known = child(top, "$namespaces")
    before = text_of(get(known, PREFIX))
    if before not in ("", NAMESPACE):
        raise InputError(
            f"{source}: the prefix {PREFIX} stands for {before[:80]!r}", "Rename it there."
        )
    put(known, PREFIX, NAMESPACE)


def _processes(top: Any) -> list[Any]:
    """The document's process, or those of its $graph; none: an input document."""
    found = [node for node in items(get(top, "$graph")) if get(node, "class") is not None]
    return found or ([top] if get(top, "class") is not None else [])


def _annotate(processes: list[Any], hints: HintFile, request: EmitRequest) -> list[str]:
    """Hints on the main process and on the steps with a part; what to tell."""
    main = next((p for p in processes if text_of(get(p, "id")).lstrip("#") == "main"), processes[0])
    rules = [
        {
            "template": rule.template,
            "producers": list(rule.producers),
            "consumers": list(rule.consumers),
            "pattern": rule.pattern,
            "says": _pairs({hint.name: hint.value for hint in rule.hints}),
        }
        for rule in hints.rules
    ]
    _add_hint(main, "Rules", {"rules": rules})
    lines = [f"{len(rules):,} rules on the workflow. Run it like the original: cwltool warns once"]
    if hints.plan is not None and hints.plan.tasks:
        steps = {name: step for p in processes for name, step in _steps(p)}
        nodes = {part: host.name for part, host in nodes_of(hints.plan, request.hosts).items()}
        placed = step_parts(hints.plan, steps)
        for name, tasks in placed.items():
            rows = [{"task": t, "part": part, **_node(nodes, part)} for t, part in tasks.items()]
            _add_hint(steps[name], "Part", {"tasks": rows})
        found = sum(map(len, placed.values()))
        lines.append(f"{found:,} of {len(hints.plan.tasks):,} tasks of the plan found in its steps")
    return lines


def _node(nodes: Mapping[int, str], part: int) -> dict[str, str]:
    return {"node": nodes[part]} if part in nodes else {}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Names are values, never keys: a key like `$import` would mean something to CWL."""
    return [{"hint": name, "value": value} for name, value in values.items()]


def step_parts(plan: Plan, steps: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Step -> its tasks of the plan: cwltool calls them `step`, `step_2`, ... where it scatters."""
    found: dict[str, dict[str, int]] = {}
    for task in plan.tasks:
        base = re.sub(r"_[0-9]{1,9}$", "", task.name)
        step = next((name for name in (task.name, base) if name in steps), None)
        if step is not None:
            found.setdefault(step, {})[task.name] = task.part
    return found


def _steps(process: Any) -> Iterator[tuple[str, Any]]:
    """(id, step) of a workflow, in either form; embedded workflows are steps, not looked into."""
    steps = get(process, "steps")
    for step in items(steps):
        yield text_of(get(step, "id")).rpartition("#")[2].rpartition("/")[2], step
    if getattr(steps, "id", "") == "mapping":
        for name, step in steps.value:
            yield name.value, step


def _add_hint(process: Any, name: str, value: Mapping[str, Any]) -> None:
    """One of our hints, in the form that the process writes hints in; an older one goes."""
    kind = f"{PREFIX}:{name}"
    known = get(process, "hints")
    if getattr(known, "id", "") == "sequence":
        known.value = [hint for hint in known.value if text_of(get(hint, "class")) != kind]
        known.value.append(node_of({"class": kind, **value}))
    else:
        put(child(process, "hints"), kind, dict(value))


def _inputs(top: Any, hints: HintFile, source: Path) -> str:
    """Hints on the files of an input document, in place."""
    found: dict[bytes, list[Any]] = {}
    todo = [top]
    while todo:
        node = todo.pop()
        kind = getattr(node, "id", "")
        todo += items(node) + ([v for _, v in node.value] if kind == "mapping" else [])
        where = text_of(get(node, "location")) or text_of(get(node, "path"))
        path = where.removeprefix("./").encode("utf-8", "surrogateescape")
        if text_of(get(node, "class")) == "File" and inside(path):
            found.setdefault(path, []).append(node)
    if not found:
        raise InputError(
            f"{source}: neither a CWL process nor an input document with files below its folder",
            "Give w.cwl, or the document with its inputs.",
        )
    plan = build_plan(hints, Paths(files=list(found)), directories=False)
    for target in plan.targets:
        for node in found[target.path]:
            put(node, f"{PREFIX}:says", _pairs(target.hints))
    return f"{len(plan.targets):,} of {len(found):,} input files with hints"
