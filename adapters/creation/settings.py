"""Hints of a rule as settings of a store, with what only the file's name can tell left open.

A group's name (DP=collocation|GROUP) follows from the texts of a template's placeholders. Stores
that say it as text get it put in; stores that spread groups over places by checksum (Placing) get
one list of settings per place, and the checksum of the name chooses.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.adapters.creation import layout
from tracehint.adapters.stores.base import Gap, Setting, Store
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.moosefs import KEY as MOOSEFS_KEY
from tracehint.adapters.stores.moosefs import MooseFs
from tracehint.adapters.stores.placing import Placing
from tracehint.errors import UsageError
from tracehint.hintgen.hints.formulas import Scale, value_of
from tracehint.hintgen.hints.model import Hint

BY_TOOL = "its own tool has to say it: beforehand, for the directory (`tracehint apply`)"
_MARK = "0tracehint.group0"  # stands for the group until the file is made


@dataclass(frozen=True)
class TableSetting:
    """One setting in the table: the group's name stands between `value` and `tail`."""

    key: bytes
    value: bytes
    tail: bytes = b""
    flags: int = 0


@dataclass(frozen=True)
class SettingSet:
    """What a rule sets. `ways`: the checksum of the group's name chooses among several."""

    ways: tuple[tuple[TableSetting, ...], ...]
    prefix: bytes = b""
    captures: tuple[int, ...] = ()
    group: int = layout.NO_GROUP
    gaps: tuple[Gap, ...] = field(default=(), compare=False)

    @property
    def empty(self) -> bool:
        """True where the store can say none of it."""
        return not any(self.ways)


def fixed_set(store: Store, hints: Mapping[str, str]) -> SettingSet:
    """The settings of values that are known. Raises UsageError for a name that nobody may write."""
    way, gaps = _way(store, hints)
    return SettingSet((way,), gaps=tuple(gaps))


def rule_set(store: Store, hints: Sequence[Hint], nodes: int | None) -> SettingSet:
    """The settings of a rule for names that nobody has seen. Raises UsageError as `fixed_set`."""
    values = {hint.name: value_of(hint, Scale(nodes=nodes)) for hint in hints}
    grouped = next((hint for hint in hints if hint.formula.get("fn") == "group"), None)
    if grouped is None:
        return fixed_set(store, values)
    kind, _, _ = grouped.value.partition("|")
    names = _representatives(len(store.places.groups)) if isinstance(store, Placing) else [_MARK]
    found = [_way(store, {**values, grouped.name: f"{kind}|{name}"}) for name in names]
    formula: dict[str, Any] = grouped.formula
    return SettingSet(
        tuple(way for way, _ in found),
        str(formula.get("prefix", "group")).encode("utf-8", "surrogateescape"),
        tuple(int(i) for i in formula.get("captures", [])),
        layout.BY_LETTERS if formula.get("letters") else layout.BY_NAME,
        tuple(found[0][1]),
    )


def _representatives(places: int) -> list[str]:
    """A group name for each place that a checksum can choose; one where there are no places."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < max(1, places):
        name = f"g{number}"
        found.setdefault(zlib.crc32(name.encode()) % max(1, places), name)
        number += 1
    return [found[place] for place in sorted(found)]


def at_creation(store: Store, hints: Mapping[str, str]) -> tuple[list[Setting], list[Gap]]:
    """What can be said of a file while it is made, and what cannot."""
    settings, gaps = store.translate(hints, "file")
    if store.about.tools and not isinstance(store, MooseFs | CephFs):
        gaps = [*gaps, *(Gap(hint=s.hint, level="none", reason=BY_TOOL) for s in settings)]
        settings = []
    return settings, gaps


def _way(store: Store, hints: Mapping[str, str]) -> tuple[tuple[TableSetting, ...], list[Gap]]:
    settings, gaps = at_creation(store, hints)
    for setting in settings:
        store.check_key(setting.key, allow_trusted=False)
    if len(settings) > layout.MAX_SETTINGS:
        raise UsageError(f"more than {layout.MAX_SETTINGS} settings for one file", "Set fewer.")
    return tuple(map(_said, settings)), gaps


def _tool(name: str) -> str:
    """Where a store's own tool lies here; where it does not, the place that packages use."""
    return str(Path(shutil.which(name) or f"/usr/bin/{name}").absolute())


def _said(setting: Setting) -> TableSetting:
    key, value = setting.key.encode(), setting.value
    flags = 0
    if setting.key == MOOSEFS_KEY:
        key, flags = os.fsencode(_tool("mfssetsclass")), layout.CLASS
    if len(key) > layout.MAX_KEY or len(value) > layout.MAX_VALUE:
        raise UsageError(f"the setting {setting.key[:80]!r} is too long", "Check the store.")
    if setting.by_name and b"@host" in value:
        before, _, after = value.partition(b"@host")
        return TableSetting(key, before, after, flags | layout.HOST)
    before, mark, after = value.partition(_MARK.encode())
    return TableSetting(key, before, after, flags | layout.GROUP if mark else flags)
