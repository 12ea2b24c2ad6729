"""Stores that are defined by a table alone: a TOML file maps hints to attributes.

The format is documented in docs/reference/stores.md; `tables/orangefs.toml` is the example.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracehint.adapters.stores.base import (
    VOCABULARY,
    About,
    Acts,
    Capability,
    Gap,
    Location,
    Setting,
    capability_key,
)
from tracehint.adapters.stores.grammar import Field, HintFields, MissingError, fill
from tracehint.adapters.stores.places import Places
from tracehint.errors import InputError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.plan import Kind

MAX_NAME = 255  # bytes, prefix included; the kernel answers ERANGE above
FORBIDDEN = ("security.", "system.")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")


def check_attribute(name: str, *, allow_trusted: bool) -> None:
    """Raise UsageError for an attribute name that tracehint does not write."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is not a usable attribute name",
            "Names are at most 255 letters, digits, and . _ : - (check --prefix).",
        )
    lower = name.lower()
    if lower.startswith(FORBIDDEN):
        raise UsageError(
            f"attribute {name} is refused: security.* and system.* change permissions",
            "Choose another --prefix, for example user.",
        )
    if lower.startswith("trusted.") and not allow_trusted:
        raise UsageError(
            f"attribute {name} is in the administrator's name space",
            "Give --allow-trusted (needs CAP_SYS_ADMIN), or a --prefix below user.",
        )


def get_value(fd: int, name: str) -> bytes | None:
    """Return an attribute of an open file; None: not set, or not supported there."""
    try:
        return os.getxattr(fd, name)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return None
        raise


def set_value(fd: int, name: str, value: bytes) -> None:
    """Set an attribute of an open file."""
    os.setxattr(fd, name, value)


def remove_value(fd: int, name: str) -> None:
    """Remove an attribute; no error if it is not set."""
    try:
        os.removexattr(fd, name)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise


KINDS: tuple[Kind, ...] = ("file", "directory")


@dataclass(frozen=True)
class Row:
    """How one hint becomes attributes: (attribute, value template) pairs."""

    capability: Capability
    attributes: tuple[tuple[str, str], ...]
    needs: tuple[str, ...] = ()
    yields_to: str = ""
    targets: tuple[Kind, ...] = KINDS


def no(how: str) -> Row:
    """Return the row of a hint that the store cannot express; `how`: the reason."""
    return Row(Capability(level="none", how=how), ())


def express_nearly(how: str, acts: tuple[Acts, ...], *pairs: tuple[str, str], **more: Any) -> Row:
    """Return the row of a hint expressed approximately; `pairs`: words and their templates."""
    return Row(Capability(level="approximate", how=how, acts=acts), pairs, **more)


def express_fully(how: str, acts: tuple[Acts, ...], *pairs: tuple[str, str], **more: Any) -> Row:
    """Return the row of a hint expressed exactly."""
    return Row(Capability(level="full", how=how, acts=acts), pairs, **more)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A store's table of hints; `translate` serves attributes and commands."""

    name: str
    title: str
    rows: Mapping[str, Row]
    about: About = field(default_factory=About)
    prefix: str = ""  # of every attribute name
    targets: tuple[Kind, ...] = KINDS
    fields: Mapping[str, Field] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    late: bool = False  # the script that runs on the host fills in its name
    note: str = ""

    def capabilities(self) -> Mapping[str, Capability]:
        """One entry per row of the vocabulary."""
        missing = Capability(level="none", how="the store has no such setting")
        return {k: self.rows[k].capability if k in self.rows else missing for k in VOCABULARY}

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Return the settings of one file or directory; the first one of an attribute counts."""
        settings: dict[str, Setting] = {}
        gaps: list[Gap] = []
        present = {capability_key(n, v) for n, v in hints.items()}
        for name, value in sorted(hints.items()):
            key = capability_key(name, value)
            gap = self._gap(key, present, kind)
            if gap is not None:
                gaps.append(gap)
            if gap is not None and gap.level == "none":
                continue
            known = HintFields(value, hints, self.places, self.late)
            try:
                texts = {a: fill(t, known, self.fields) for a, t in self.rows[key].attributes}
            except MissingError as missing:
                gaps.append(Gap(hint=key, level="none", reason=str(missing)))
                continue
            for attribute, text in texts.items():
                one_setting = Setting(
                    key=self.prefix + attribute, value=os.fsencode(text), hint=f"{name}={value}"
                )
                settings.setdefault(attribute, one_setting)
        return list(settings.values()), gaps

    def _gap(self, key: str, present: set[str], kind: Kind) -> Gap | None:
        """Return the gap of a hint on this kind of object; None: it is expressed exactly."""
        row = self.rows.get(key)
        if row is None:
            return Gap(hint=key, level="none", reason="the store has no such setting")
        if row.capability.level == "none":
            return Gap(hint=key, level="none", reason=row.capability.how)
        if row.yields_to in present:
            return Gap(hint=key, level="none", reason=f"{row.yields_to} decides it")
        missing = [need for need in row.needs if need not in present]
        if missing:
            return Gap(hint=key, level="none", reason=f"needs {', '.join(missing)} as well")
        if kind not in self.targets or kind not in row.targets:
            return Gap(
                hint=key, level="none", reason=f"{self.name} does not support it on a {kind}"
            )
        if row.capability.level == "approximate":
            return Gap(hint=key, level="approximate", reason=row.capability.how)
        return None


@dataclass(frozen=True, kw_only=True)
class TableStore(Table):
    """A store made from a table of attributes. `location`: attribute with a file's nodes."""

    location: str = ""

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Accept only attributes of this table, and no dangerous name space."""
        check_attribute(key, allow_trusted=allow_trusted)
        if key not in {self.prefix + a for r in self.rows.values() for a, _ in r.attributes}:
            raise InputError(
                f"{key[:80]!r} is not an attribute of the store {self.name}",
                "Give the --prefix with which the hints were set.",
            )

    def read(self, fd: int, key: str) -> bytes | None:
        """Return the attribute's value, or None."""
        return get_value(fd, key)

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Set the attribute."""
        set_value(fd, key, value)

    def remove(self, fd: int, key: str) -> None:
        """Remove the attribute."""
        remove_value(fd, key)

    def locate(self, fd: int) -> Location | None:
        """Return the nodes in the location attribute, separated by commas or spaces."""
        value = get_value(fd, self.location) if self.location else None
        if value is None:
            return None
        nodes = tuple(os.fsdecode(value).replace(",", " ").split())
        return Location(nodes=nodes, detail={"attribute": self.location})
