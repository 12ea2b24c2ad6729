"""Stores that are nothing but a table: a TOML file says which attribute carries which hint.

The format is documented in docs/reference/stores.md; `orangefs.toml` is the example. Values are
built from a closed list of fields, never evaluated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.adapters.plan import Kind
from tracehint.adapters.stores.base import (
    VOCABULARY,
    Capability,
    Gap,
    Location,
    Setting,
    capability_key,
)
from tracehint.adapters.stores.xattrs import check_attribute, get_value, remove_value, set_value
from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

_REMEDY = "The format of store tables is in docs/reference/stores.md."
_FILE = TextFile(kind="A store table", limit="small-bytes", check="Check --store.", remedy=_REMEDY)
LEVELS = ("full", "approximate", "none")
ACTS = ("global", "directory", "creation", "any")
KINDS: tuple[Kind, ...] = ("file", "directory")
_FIELD = re.compile(r"\{(value|arg|block|region)\}")
_TOP = {"name", "title", "prefix", "location", "note", "targets", "hints"}
_ROW = {"attribute", "value", "set", "level", "how", "acts", "needs", "yields_to"}


@dataclass(frozen=True)
class Row:
    """How one hint becomes attributes: (attribute, value template) pairs."""

    capability: Capability
    attributes: tuple[tuple[str, str], ...]
    needs: tuple[str, ...] = ()
    yields_to: str = ""


@dataclass(frozen=True)
class TableStore:
    """A store made from a table. `prefix` stands before every attribute name."""

    name: str
    title: str
    prefix: str
    rows: Mapping[str, Row]
    targets: tuple[Kind, ...] = KINDS
    location: str = ""
    note: str = ""
    keys: frozenset[str] = field(default_factory=frozenset)

    def capabilities(self) -> Mapping[str, Capability]:
        """One entry per row of the vocabulary."""
        missing = Capability(level="none", how="the table has no row for it")
        return {k: self.rows[k].capability if k in self.rows else missing for k in VOCABULARY}

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Settings of one file or directory; the first setting of an attribute stays."""
        settings: dict[str, Setting] = {}
        gaps: list[Gap] = []
        present = {capability_key(n, v) for n, v in hints.items()}
        for name, value in sorted(hints.items()):
            key = capability_key(name, value)
            gap = self._gap(key, present, kind)
            if gap is not None:
                gaps.append(gap)
            row = self.rows.get(key)
            if row is None or kind not in self.targets or (gap and gap.level == "none"):
                continue
            for attribute, template in row.attributes:
                text = _fill(template, value, hints)
                settings.setdefault(
                    attribute,
                    Setting(
                        key=self.prefix + attribute, value=text.encode(), hint=f"{name}={value}"
                    ),
                )
        return list(settings.values()), gaps

    def _gap(self, key: str, present: set[str], kind: Kind) -> Gap | None:
        """What is lost when this hint is said to this kind of object; None: nothing."""
        row = self.rows.get(key)
        if row is None:
            return Gap(hint=key, level="none", reason="the table has no row for it")
        if row.capability.level == "none":
            return Gap(hint=key, level="none", reason=row.capability.how)
        if row.yields_to in present:
            return Gap(hint=key, level="none", reason=f"{row.yields_to} decides it")
        missing = [need for need in row.needs if need not in present]
        if missing:
            return Gap(hint=key, level="none", reason=f"needs {', '.join(missing)} as well")
        if kind not in self.targets:
            return Gap(hint=key, level="none", reason=f"{self.name} takes no hints on a {kind}")
        if row.capability.level == "approximate":
            return Gap(hint=key, level="approximate", reason=row.capability.how)
        return None

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Only the attributes of this table may be written, and never a dangerous name space."""
        check_attribute(key, allow_trusted=allow_trusted)
        if key not in {self.prefix + a for r in self.rows.values() for a, _ in r.attributes}:
            raise InputError(
                f"{key[:80]!r} is no attribute of the store {self.name}",
                "Give the --prefix with which the hints were set.",
            )

    def read(self, fd: int, key: str) -> bytes | None:
        """The attribute's value, or None."""
        return get_value(fd, key)

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Set the attribute."""
        set_value(fd, key, value)

    def remove(self, fd: int, key: str) -> None:
        """Remove the attribute."""
        remove_value(fd, key)

    def locate(self, fd: int) -> Location | None:
        """Nodes that the store's location attribute names, separated by commas or spaces."""
        value = get_value(fd, self.location) if self.location else None
        if value is None:
            return None
        nodes = tuple(os.fsdecode(value).replace(",", " ").split())
        return Location(nodes=nodes, detail={"attribute": self.location})


def _fill(template: str, value: str, hints: Mapping[str, str]) -> str:
    """Replace {value}, {arg} (after `|`), {block} (BlockSize), {region} (arg times BlockSize)."""
    arg = value.partition("|")[2]
    block = hints.get("BlockSize", "")
    region = str(int(arg) * int(block)) if arg.isdecimal() and block.isdecimal() else ""
    fields = {"value": value, "arg": arg, "block": block, "region": region}
    return _FIELD.sub(lambda found: fields[found.group(1)], template)


def load_table(path: Path, *, prefix: str | None = None) -> TableStore:
    """Read a table; raises InputError naming what is wrong with it."""
    return _table(_FILE.toml(path), str(path), prefix)


def _table(data: dict[str, Any], origin: str, prefix: str | None) -> TableStore:
    name, hints = data.get("name"), data.get("hints")
    unknown = sorted(set(data) - _TOP)
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9-]{0,40}", name):
        raise InputError(f"{origin}: `name` is missing or not lower-case letters", _REMEDY)
    if unknown or not isinstance(hints, dict):
        wrong = f"unknown key {unknown[0]!r}" if unknown else "no [hints] table"
        raise InputError(f"{origin}: {wrong}", _REMEDY)
    rows = {key: _row(origin, key, raw) for key, raw in hints.items()}
    chosen = data.get("prefix", "") if prefix is None else prefix
    targets = tuple(data.get("targets", KINDS))
    texts = [chosen, data.get("title", ""), data.get("location", ""), data.get("note", "")]
    if not all(isinstance(t, str) for t in texts) or not set(targets) <= set(KINDS):
        raise InputError(f"{origin}: a top-level key has the wrong type or value", _REMEDY)
    for row in rows.values():
        for attribute, _ in row.attributes:
            check_attribute(chosen + attribute, allow_trusted=True)
    return TableStore(
        name=name,
        title=texts[1] or name,
        prefix=chosen,
        rows=rows,
        targets=targets,
        location=texts[2],
        note=texts[3],
    )


def _row(origin: str, key: str, raw: Any) -> Row:
    where = f"{origin}: hints.{key}"
    if key not in VOCABULARY:
        raise InputError(f"{where} is no known hint", "Known are: " + ", ".join(VOCABULARY))
    if not isinstance(raw, dict) or set(raw) - _ROW:
        raise InputError(f"{where} is not a table of {', '.join(sorted(_ROW))}", _REMEDY)
    level, acts = raw.get("level", "full"), raw.get("acts", [])
    if level not in LEVELS or not set(acts) <= set(ACTS):
        raise InputError(f"{where}: level or acts has an unknown value", _REMEDY)
    pairs = raw.get("set", [raw] if level != "none" else [])
    attributes = tuple((p.get("attribute", key), p.get("value", "{value}")) for p in pairs)
    for attribute, value in attributes:
        unfilled = _FIELD.sub("", value) if isinstance(value, str) else "{"
        if not isinstance(attribute, str) or "{" in unfilled or "}" in unfilled:
            raise InputError(
                f"{where}: a value may hold {{value}}, {{arg}}, {{block}}, {{region}}", _REMEDY
            )
    return Row(
        capability=Capability(level=level, how=str(raw.get("how", "")), acts=tuple(acts)),
        attributes=attributes,
        needs=tuple(map(str, raw.get("needs", []))),
        yields_to=str(raw.get("yields_to", "")),
    )
