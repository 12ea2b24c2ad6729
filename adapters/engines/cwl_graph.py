"""CWL: the research object that `cwltool --provenance DIR` writes (CWLProv, PROV-JSON).

Files are known by their entity, not by their content: equal contents share a checksum. Host paths
and pids are not recorded; names are the base names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import DeclaredGraph, GraphBuilder, iso_time, raw_name
from tracehint.adapters.engines.unpack import parse_json, read_text
from tracehint.errors import InputError

_PROVENANCE = Path("metadata") / "provenance" / "primary.cwlprov.json"


def sniff(path: Path, _head: bytes) -> bool:
    """A directory with a primary provenance file, or that file."""
    return (path / _PROVENANCE).is_file() or path.name == _PROVENANCE.name


def read(path: Path) -> DeclaredGraph:
    """One task per activity that ran a step."""
    file = path / _PROVENANCE if path.is_dir() else path
    data = parse_json(read_text(file), file)
    if not isinstance(data, dict) or not isinstance(data.get("activity"), dict):
        raise InputError(f"{file}: not CWL provenance", "Record it: cwltool --provenance DIR")
    # names of files are unique per entity, not per path: each gets a place of its own
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
        """The relations of one kind."""
        table = self.data.get(kind)
        if not isinstance(table, dict):
            return []
        flat: list[Any] = []
        for value in table.values():
            flat += value if isinstance(value, list) else [value]
        return [row for row in flat if isinstance(row, dict)]

    def files(self, entity: str) -> list[str]:
        """The files of an entity: itself, or the members of a collection, each once."""
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
        """The base name of a file entity; empty for values that are no files."""
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
    """The step that an activity ran: `Run of workflow/packed.cwl#main/step_2` -> step_2."""
    for fact in facts if isinstance(facts, list) else [facts]:
        label = fact.get("prov:label") if isinstance(fact, dict) else None
        if isinstance(label, str) and label.startswith("Run of ") and "#main/" in label:
            return label.partition("#main/")[2]
    return ""
