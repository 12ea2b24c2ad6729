"""CWL: a workflow or input document with hints in tracehint's namespace, and the plan.

Runners may ignore CWL hints, and cwltool ignores these with one warning: nothing is staged, no
network is needed, and the document stays valid for every runner. A runner that places tasks reads
`tracehint:Part` of each step, or FILE.plan.json. In an input document, each File gets the hints of
its path. Tested with cwltool 3.3.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.graph_base import DeclaredGraph, GraphBuilder, iso_time, raw_name
from tracehint.adapters.engines.planned import emit_json, nodes_of
from tracehint.adapters.engines.unpack import parse_json, read_text
from tracehint.adapters.engines.yaml_files import (
    child,
    get,
    items,
    node_of,
    read_node,
    render,
    set_key,
    text_of,
)
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.plan import build_plan
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile, Plan
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.wording import plural

PREFIX, NAMESPACE = "tracehint", "urn:tracehint:cwl:1#"
_FILE = TextFile(kind="A CWL document", limit="names-bytes", check="Check the path.")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the annotated document, which is written next to its source, and the plan."""
    if request.workflow is None:
        raise UsageError(
            "no workflow given",
            "Add it: tracehint emit H.json --workflow-engine cwl w.cwl -o hinted.cwl",
        )
    source = request.workflow
    output = request.output or source.with_name(f"{source.stem}.hinted{source.suffix}")
    if output.resolve().parent != source.resolve().parent:
        raise UsageError(
            f"{output}: relative names in {source.name} are valid only in its own folder",
            f"Write it there: -o {source.with_name(output.name)}",
        )
    top = read_node(_FILE.read(source).decode("utf-8", "replace"), source)
    _declare(top, source)
    processes = _processes(top)
    files: dict[Path | None, bytes] = {}
    if processes:
        notes = _annotate(processes, hints, request)
        if hints.plan is not None and hints.plan.tasks:
            path = Path(f"{output}.plan.json")
            files = dict(emit_json(hints, replace(request, output=path)).files)
            notes.append(f"{path.name} is the plan for a runner that places tasks")
    else:
        notes = [_inputs(top, hints, source)]
    return Emitted(files={output: render(top), **files}, remarks=notes)


def _declare(top: Any, source: Path) -> None:
    """Declare tracehint's namespace. Raise InputError if its prefix means another one."""
    known = child(top, "$namespaces")
    before = text_of(get(known, PREFIX))
    if before not in ("", NAMESPACE):
        raise InputError(f"{source}: the prefix {PREFIX} means {before[:80]!r}", "Rename it there.")
    set_key(known, PREFIX, NAMESPACE)


def _processes(top: Any) -> list[Any]:
    """Return the document's process or those of its $graph; none for an input document."""
    found = [node for node in items(get(top, "$graph")) if get(node, "class") is not None]
    return found or ([top] if get(top, "class") is not None else [])


def _annotate(processes: list[Any], hints: HintFile, request: EmitRequest) -> list[str]:
    """Add hints to the main process and to steps with a part; return remarks for the user."""
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
    lines = [
        f"{plural(len(rules), 'rule')} on the workflow. Run it like the original: "
        "cwltool warns once"
    ]
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
    """Return hint names as values, not as keys: CWL interprets keys such as `$import`."""
    return [{"hint": name, "value": value} for name, value in values.items()]


def step_parts(plan: Plan, steps: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Map steps to their tasks in the plan; cwltool names scattered ones `step`, `step_2`, ..."""
    found: dict[str, dict[str, int]] = {}
    for task in plan.tasks:
        base = re.sub(r"_[0-9]{1,9}$", "", task.name)
        step = next((name for name in (task.name, base) if name in steps), None)
        if step is not None:
            found.setdefault(step, {})[task.name] = task.part
    return found


def _steps(process: Any) -> Iterator[tuple[str, Any]]:
    """Yield (id, step) of a workflow in list or map form; nested workflows are not expanded."""
    steps = get(process, "steps")
    for step in items(steps):
        yield text_of(get(step, "id")).rpartition("#")[2].rpartition("/")[2], step
    if getattr(steps, "id", "") == "mapping":
        for name, step in steps.value:
            yield name.value, step


def _add_hint(process: Any, name: str, value: Mapping[str, Any]) -> None:
    """Add a tracehint hint in the process's own form of hints, replacing an older one."""
    kind = f"{PREFIX}:{name}"
    known = get(process, "hints")
    if getattr(known, "id", "") == "sequence":
        known.value = [hint for hint in known.value if text_of(get(hint, "class")) != kind]
        known.value.append(node_of({"class": kind, **value}))
    else:
        set_key(child(process, "hints"), kind, dict(value))


def _inputs(top: Any, hints: HintFile, source: Path) -> str:
    """Add hints to the files of an input document in place; return a remark for the user."""
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
            set_key(node, f"{PREFIX}:says", _pairs(target.hints))
    return f"{len(plan.targets):,} of {len(found):,} input files with hints"


# CWL: the research object that `cwltool --provenance DIR` writes (CWLProv, PROV-JSON).
#
# Files are identified by entity, not by content: equal contents share a checksum. Host paths
# and pids are not recorded; names are the base names.


_PROVENANCE = Path("metadata") / "provenance" / "primary.cwlprov.json"


def sniff(path: Path, _head: bytes) -> bool:
    """Return whether this is a directory with a primary provenance file, or that file."""
    return (path / _PROVENANCE).is_file() or path.name == _PROVENANCE.name


def read(path: Path) -> DeclaredGraph:
    """Read one task per activity that ran a step."""
    file = path / _PROVENANCE if path.is_dir() else path
    data = parse_json(read_text(file), file)
    if not isinstance(data, dict) or not isinstance(data.get("activity"), dict):
        raise InputError(f"{file}: not CWL provenance", "Record it: cwltool --provenance DIR")
    # file names are unique per entity, not per path: each entity gets its own directory
    out = GraphBuilder("cwl", os.fsencode(file.absolute().parent))
    _Document(data).fill(out)
    return out.graph()


class _Document:
    """Look-ups in one PROV-JSON document."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.members: dict[str, list[str]] = {}
        for row in self.rows("hadMember"):
            self.members.setdefault(_id(row, "collection"), []).append(_id(row, "entity"))
        entities = data.get("entity")
        self.entities: dict[str, Any] = entities if isinstance(entities, dict) else {}
        self.times = {
            kind: {_id(r, "activity"): iso_time(r.get("prov:time")) for r in self.rows(kind)}
            for kind in ("wasStartedBy", "wasEndedBy")
        }

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Return the relations of one kind."""
        table = self.data.get(kind)
        if not isinstance(table, dict):
            return []
        flat: list[Any] = []
        for value in table.values():
            flat += value if isinstance(value, list) else [value]
        return [row for row in flat if isinstance(row, dict)]

    def files(self, entity: str) -> list[str]:
        """Return the files of an entity: itself, or the members of a collection, each once."""
        found: list[str] = []
        seen: set[str] = set()
        todo = [entity]
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in self.members:
                todo.extend(reversed(self.members[one]))
            elif self.name(one):
                found.append(one)
        return found

    def name(self, entity: str) -> str:
        """Return the base name of a file entity; empty for values that are not files."""
        facts = self.entities.get(entity)
        for fact in facts if isinstance(facts, list) else [facts]:
            if isinstance(fact, dict) and isinstance(fact.get("cwlprov:basename"), str):
                return str(fact["cwlprov:basename"])
        return ""

    def fill(self, out: GraphBuilder) -> None:
        """Add the tasks and their files."""
        labels = {a: _step(facts) for a, facts in self.data["activity"].items()}
        steps = {a: label for a, label in labels.items() if label}
        for activity, label in steps.items():
            out.task(
                activity,
                name=label,
                type=label.rstrip("0123456789").rstrip("_") or label,
                start_ns=self.times["wasStartedBy"].get(activity),
                end_ns=self.times["wasEndedBy"].get(activity),
            )
        for kind, direction in (("used", "in"), ("wasGeneratedBy", "out")):
            seen: set[tuple[str, str]] = set()
            for row in self.rows(kind):
                activity = _id(row, "activity")
                for entity in self.files(_id(row, "entity")) if activity in steps else []:
                    if (activity, entity) not in seen:
                        seen.add((activity, entity))
                        place = entity.rpartition(":")[2].replace("/", "_")
                        name = self.name(entity).replace("/", "_")
                        out.file(activity, direction, raw_name(f"{place}/{name}"))


def _id(row: dict[str, Any], role: str) -> str:
    value = row.get(f"prov:{role}")
    return value if isinstance(value, str) else ""


def _step(facts: Any) -> str:
    """Return the step that an activity ran: `Run of workflow/packed.cwl#main/step_2` -> step_2."""
    for fact in facts if isinstance(facts, list) else [facts]:
        label = fact.get("prov:label") if isinstance(fact, dict) else None
        if isinstance(label, str) and label.startswith("Run of ") and "#main/" in label:
            return label.partition("#main/")[2]
    return ""
