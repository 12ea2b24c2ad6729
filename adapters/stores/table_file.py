"""Read a store's TOML file: attributes, or the words of commands. Every key is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tracehint.adapters.plan import Kind
from tracehint.adapters.stores.about import read_about
from tracehint.adapters.stores.base import VOCABULARY, Capability
from tracehint.adapters.stores.commands import (
    OPTIONS,
    AskPlace,
    CommandStore,
    NamedValue,
    ObjectCommand,
)
from tracehint.adapters.stores.fields import PLAIN, Field, unknown_field
from tracehint.adapters.stores.grammar import KINDS as WORD_KINDS
from tracehint.adapters.stores.grammar import Grid
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.table import KINDS, Row, TableStore
from tracehint.adapters.stores.xattrs import check_attribute
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.text.textfile import TextFile

_REMEDY = "The format of store tables is in docs/reference/stores.md."
_FILE = TextFile(kind="A store table", limit="small-bytes", check="Check --store.", remedy=_REMEDY)
LEVELS = ("full", "approximate", "none")
ACTS = ("global", "directory", "creation", "any")
_TOP = {
    "name", "title", "prefix", "location", "note", "targets", "hints", "about", "fields",
    "commands", "mounted", "locate",
}  # fmt: skip  # a table
_ROW = {"attribute", "value", "set", "level", "how", "acts", "needs", "yields_to", "targets"}
_PROGRAM = re.compile(r"[a-z][a-z0-9_-]{0,40}")


def load_table(
    path: Path, *, prefix: str | None = None, places: Places | None = None
) -> TableStore | CommandStore:
    """Read a table; raises InputError naming what is wrong with it."""
    return _table(_FILE.toml(path), str(path), prefix, places or Places())


def _table(
    data: dict[str, Any], origin: str, prefix: str | None, places: Places
) -> TableStore | CommandStore:
    name, hints = data.get("name"), data.get("hints")
    unknown = sorted(set(data) - _TOP)
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9-]{0,40}", name):
        raise InputError(f"{origin}: `name` is missing or not lower-case letters", _REMEDY)
    if unknown or not isinstance(hints, dict):
        wrong = f"unknown key {unknown[0]!r}" if unknown else "no [hints] table"
        raise InputError(f"{origin}: {wrong}", _REMEDY)
    numbers = {key: _field(origin, key, raw) for key, raw in _dict(origin, data, "fields").items()}
    rows = {key: _row(origin, key, raw, numbers) for key, raw in hints.items()}
    chosen = data.get("prefix", "") if prefix is None else prefix
    texts = [chosen, data.get("title", ""), data.get("location", ""), data.get("note", "")]
    if not all(isinstance(t, str) for t in texts) or type(data.get("mounted", True)) is not bool:
        raise InputError(f"{origin}: a top-level key has the wrong type or value", _REMEDY)
    common: dict[str, Any] = {
        "name": name, "title": texts[1] or name, "rows": rows, "fields": numbers, "note": texts[3],
        "targets": _targets(origin, data), "places": places,
        "about": read_about(_dict(origin, data, "about"), origin, _REMEDY),
    }  # fmt: skip  # a table
    if "commands" in data:
        if prefix is not None:
            raise UsageError(f"the store {name} has no prefix", "Leave --prefix away.")
        return _command_store(origin, data, common)
    for row in rows.values():
        for attribute, _ in row.attributes:
            check_attribute(chosen + attribute, allow_trusted=True)
    return TableStore(**common, prefix=chosen, location=texts[2])


def _command_store(origin: str, data: Mapping[str, Any], common: dict[str, Any]) -> CommandStore:
    commands = {k: _command(origin, k, raw) for k, raw in _dict(origin, data, "commands").items()}
    words = [word for command in commands.values() for word in command.words]
    named = {a for row in common["rows"].values() for a, _ in row.attributes}
    if len(words) != len(set(words)) or named - set(words):
        wrong = sorted(named - set(words)) or ["one word in two commands"]
        raise InputError(f"{origin}: no command has the word {wrong[0]!r}", _REMEDY)
    mounted = data.get("mounted", True)
    return CommandStore(
        **common, commands=commands, mounted=mounted, ask_place=_place(origin, data)
    )


def _place(origin: str, data: Mapping[str, Any]) -> AskPlace | None:
    raw = _dict(origin, data, "locate")
    if not raw:
        return None
    call, node = raw.get("call", []), raw.get("node")
    if set(raw) != {"call", "node"} or not _is_call(call) or not isinstance(node, str):
        raise InputError(f"{origin}: [locate] holds call and node", _REMEDY)
    return AskPlace(call=tuple(call), node=_regex(f"{origin}: locate.node", node))


def _is_call(argv: Any) -> bool:
    return _texts(argv) and bool(argv) and _PROGRAM.fullmatch(argv[0]) is not None


def _regex(where: str, text: str) -> str:
    """`text` if it is a regular expression with one group; raises InputError."""
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise InputError(f"{where}: {error}", _REMEDY) from error
    if groups != 1:
        raise InputError(f"{where} must have one group", _REMEDY)
    return text


def _command(origin: str, name: str, raw: Any) -> ObjectCommand:
    where = f"{origin}: commands.{name}"
    vectors = {"set", "get", "unset"}
    if not isinstance(raw, dict) or set(raw) - {*vectors, "words", "creates"}:
        raise InputError(f"{where} holds set, get, unset, words and creates", _REMEDY)
    for key in vectors & set(raw):
        if not _is_call(raw[key]):
            raise InputError(f"{where}.{key} is no argument vector", _REMEDY)
    if OPTIONS not in raw.get("set", ()):
        raise InputError(f"{where}.set has no place for {OPTIONS}", _REMEDY)
    words = {key: _word(where, key, one) for key, one in _dict(where, raw, "words").items()}
    return ObjectCommand(
        words=words,
        set=tuple(raw["set"]),
        get=tuple(raw.get("get", ())),
        unset=tuple(raw.get("unset", ())),
        creates=raw.get("creates") is True,
    )


def _word(where: str, name: str, raw: Any) -> NamedValue:
    where = f"{where}.words.{name}"
    if not isinstance(raw, dict) or set(raw) - {"kind", "option", "read", "means"}:
        raise InputError(f"{where} holds kind, option, read and means", _REMEDY)
    kind, option, read = raw.get("kind"), raw.get("option", []), raw.get("read", "")
    if not isinstance(kind, str) or not re.fullmatch("[A-Za-z0-9_|]+", kind):
        known = ", ".join(WORD_KINDS)
        raise InputError(f"{where}.kind is {known} or words with | between", _REMEDY)
    if not _texts(option) or not option or not isinstance(read, str):
        raise InputError(f"{where}: option is a list of texts, read a text", _REMEDY)
    if read:
        _regex(f"{where}.read", read)
    means = _dict(where, raw, "means")
    if not _texts([*means.values()]):
        raise InputError(f"{where}: means holds texts", _REMEDY)
    return NamedValue(kind=kind, option=tuple(option), read=read, means=means)


def _field(origin: str, name: str, raw: Any) -> Field:
    where = f"{origin}: fields.{name}"
    numbers = {"multiple", "divide", "least", "most"}
    if not isinstance(raw, dict) or set(raw) - {"of", "power2", "map", *numbers} or name in PLAIN:
        raise InputError(f"{where} holds of, map, multiple, divide, power2, least, most", _REMEDY)
    grid = {key: value for key, value in raw.items() if key not in ("of", "map")}
    words = _dict(where, raw, "map")
    if not _texts([*words.values()]):
        raise InputError(f"{where}: map holds texts", _REMEDY)
    good = all(type(grid[key]) is int and grid[key] > 0 for key in numbers & set(grid))
    if not good or type(grid.get("power2", False)) is not bool or raw.get("of") not in PLAIN:
        raise InputError(f"{where}: of is one of {', '.join(PLAIN)}, the rest numbers", _REMEDY)
    return Field(raw["of"], Grid(**grid), words)


def _row(origin: str, key: str, raw: Any, fields: Mapping[str, Field]) -> Row:
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
        known = isinstance(value, str) and not unknown_field(value, fields)
        if not isinstance(attribute, str) or not known:
            raise InputError(
                f"{where}: a value may hold {{value}}, {{arg}}, {{block}}, {{region}}", _REMEDY
            )
    return Row(
        capability=Capability(level=level, how=str(raw.get("how", "")), acts=tuple(acts)),
        attributes=attributes,
        needs=tuple(map(str, raw.get("needs", []))),
        yields_to=str(raw.get("yields_to", "")),
        targets=_targets(where, raw),
    )


def _targets(where: str, raw: Mapping[str, Any]) -> tuple[Kind, ...]:
    targets = raw.get("targets", list(KINDS))
    if not _texts(targets) or not set(targets) <= set(KINDS):
        raise InputError(f"{where}: targets are file and directory", _REMEDY)
    return cast("tuple[Kind, ...]", tuple(targets))


def _dict(where: str, raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = raw.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{where}: {key} is no table", _REMEDY)
    return found


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
