"""Reading a cluster file (TOML), or a built-in cluster by its name."""

from __future__ import annotations

import math
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from tracehint.analyzer.predict.cluster import (
    HOSTS,
    LINKS,
    SITES,
    TABLES,
    Cluster,
    ClusterSection,
    Field,
    Flag,
    Number,
    Range,
    Word,
)
from tracehint.errors import InputError
from tracehint.schemas.plain import read_named

MAX_BYTES, MAX_TABLES = 1 << 20, 256
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BUILTIN = "clusters"


def ready_made() -> list[str]:
    """Return the names of the built-in clusters."""
    folder = resources.files("tracehint.analyzer.predict") / _BUILTIN
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def is_ready_made(given: str | Path) -> bool:
    """Whether `given` names a built-in cluster; a file of that name takes precedence."""
    return str(given) in ready_made() and not Path(given).is_file()


def read_cluster(given: str | Path) -> Cluster:
    """Read a cluster from a file, or a built-in one. Raises InputError with the place of the error
    and a remedy."""
    if is_ready_made(given):
        return parse_cluster(_read_builtin(str(given)), str(given))
    try:
        raw = read_named(given, MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{given}: cannot be read as a cluster: {error.strerror}",
            f"Give a cluster file, or one of: {', '.join(ready_made())}.",
        ) from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"{given}: is larger than 1 MiB", "A cluster file is a few lines long.")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InputError(f"{given}: is not UTF-8 text", "Write it as TOML.") from None
    return parse_cluster(text, str(given))


def parse_cluster(text: str, where: str) -> Cluster:
    """Parse the text of a cluster file; `where` names it in errors. Raises InputError."""
    data = _toml(text, where)
    base = data.pop("base", None)
    if base is not None:
        if base not in ready_made():
            _refuse(where, "base", f"is {base!r:.60}", f"Known: {', '.join(ready_made())}.")
        data = _overlay_tables(_toml(_read_builtin(base), base), data)
    name = data.pop("name", Path(where).stem)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        _refuse(where, "name", f"{name!r:.80}", "Use letters, digits, dots, dashes, underscores.")
    for key in data:
        if key not in TABLES:
            _refuse(where, key, "is not known", f"Tables: {', '.join(TABLES)}.")
    return _cluster(name, data, where)


def _cluster(name: str, data: dict[str, Any], where: str) -> Cluster:
    parts = {key: _sections(data.get(key), key, where) for key in TABLES if key != "servers"}
    nodes = parts["nodes"]
    sites = tuple((site.words["name"], site) for site in parts["sites"])
    store = parts["store"][0]
    servers = nodes[0].with_number("count", 1)  # default: a machine like the first node
    if "servers" in data:
        servers = _sections(
            {"count": 1, **_table(data["servers"], "servers", where)}, "servers", where
        )[0]
    if store.words["servers"] == "one":
        servers = servers.with_number("count", 1)
    if store.words["servers"] == "apart" and "servers" not in data:
        _refuse(where, "servers", "is missing", "Servers apart need a [servers] table with count.")
    known = _unique_names(parts["sites"], "site", where)
    for part in (*nodes, servers):
        site = part.words["site"]
        if site not in known and (known or site):
            _refuse(where, "site", f"{site!r:.60} is not one of [[sites]]", "Name one of them.")
    _check_hosts((*nodes, servers), parts["hosts"], where)
    for link in parts["links"]:
        ends = link.words["a"], link.words["b"]
        if ends[0] == ends[1] or not set(ends) <= set(known):
            _refuse(where, "links", f"{ends!r:.80} are not two of [[sites]]", "Name two sites.")
    total = sum(part["count"] for part in nodes)
    if total > TABLES["nodes"][0]["count"].most:  # type: ignore[union-attr]
        _refuse(where, "nodes.count", f"{total:g} nodes are too many", "Use at most 10,000.")
    one = {key: parts[key][0] for key in ("scheduler", "model", "registry")}
    links = tuple(parts["links"])
    hosts = tuple((host.words["name"], host) for host in parts["hosts"])
    return Cluster(name, tuple(nodes), servers, store, **one, sites=sites, links=links, hosts=hosts)


def _unique_names(parts: list[ClusterSection], what: str, where: str) -> list[str]:
    names = [part.words["name"] for part in parts]
    if len(set(names)) != len(names):
        _refuse(where, f"{what}s.name", "occurs twice", f"Give each {what} another name.")
    return names


def _check_hosts(
    parts: tuple[ClusterSection, ...], hosts: list[ClusterSection], where: str
) -> None:
    known = _unique_names(hosts, "host", where)
    if "" in known:
        _refuse(where, "hosts.name", "is missing", "Use the name from the nodes' `host`.")
    for part in parts:
        host = part.words["host"]
        if host and host not in known:
            _refuse(where, "host", f"{host!r:.60} is not one of [[hosts]]", "Name one of them.")


def _sections(found: Any, key: str, where: str) -> list[ClusterSection]:
    fields, several = TABLES[key]
    if found is None and fields in (SITES, LINKS, HOSTS):
        return []
    if several and isinstance(found, list):
        if not 0 < len(found) <= MAX_TABLES:
            _refuse(where, key, f"has {len(found)} tables", f"Give 1 to {MAX_TABLES}.")
        tables = found
    else:
        tables = [{} if found is None else found]
    return [_section(_table(table, key, where), key, fields, where) for table in tables]


def _table(found: Any, key: str, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        _refuse(where, key, "is not a table", f"Write [{key}] and its keys below.")
    return found


def _section(
    table: dict[str, Any], key: str, fields: dict[str, Field], where: str
) -> ClusterSection:
    for name in table:
        if name not in fields:
            near = _nearest(name, fields)
            _refuse(where, f"{key}.{name}", "is not known", f"{near}Keys: {', '.join(fields)}.")
    numbers: dict[str, Range] = {}
    words: dict[str, str] = {}
    for name, field in fields.items():
        place = f"{key}.{name}"
        if isinstance(field, Word):
            words[name] = _word(table.get(name, field.default), field, place, where)
        elif isinstance(field, Flag):
            value = table.get(name, field.default)
            if not isinstance(value, bool):
                _refuse(where, place, f"is {value!r:.60}", "Write true or false.")
            numbers[name] = Range(value, value, value)
        else:
            numbers[name] = _number(table.get(name, field.default), field, place, where)
    return ClusterSection(numbers, words)


def _word(value: Any, field: Word, place: str, where: str) -> str:
    if not isinstance(value, str) or (field.choices and value not in field.choices):
        _refuse(where, place, f"is {value!r:.60}", f"Choose one of: {', '.join(field.choices)}.")
    if not field.choices and value and not _NAME.fullmatch(value):
        _refuse(where, place, f"is {value!r:.60}", "Use letters, digits, dots and dashes.")
    return value


def _number(value: Any, field: Number, place: str, where: str) -> Range:
    """Return the range of a number, or of a list [lowest, highest] or [lowest, usual, highest]."""
    between = f"Give a number from {field.least:g} to {field.most:g}."
    if value is None:
        _refuse(where, place, "is missing", between)
    several = isinstance(value, list) and len(value) in (2, 3) and not field.whole
    parts = value if several else [value]
    for part in parts:
        good = isinstance(part, int | float) and not isinstance(part, bool)
        if not good or not math.isfinite(part) or not field.least <= part <= field.most:
            _refuse(where, place, f"is {part!r:.60}", between)
        if field.whole and part != int(part):
            _refuse(where, place, f"is {part!r:.60}", "Give a whole number.")
    if list(parts) != sorted(parts):
        _refuse(where, place, f"is {value!r:.60}", "Write a range as [lowest, usual, highest].")
    low, high = parts[0] * field.unit, parts[-1] * field.unit
    middle = parts[1] * field.unit if len(parts) == 3 else (low + high) / 2
    return Range(low, middle, high)


def _overlay_tables(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Merge the tables of a file over those of its base; a repeated table replaces the base's."""
    result = {key: value for key, value in base.items() if key != "name"}
    for key, value in own.items():
        known = result.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        result[key] = {**known, **value} if both else value  # type: ignore[dict-item]
    return result


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where}: is not TOML: {str(error)[:200]}", "See docs/reference/cluster-file.md."
        ) from None


def _read_builtin(name: str) -> str:
    folder = resources.files("tracehint.analyzer.predict") / _BUILTIN
    return (folder / f"{name}.toml").read_text(encoding="utf-8")


def _nearest(name: str, fields: dict[str, Field]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, fields, 1)
    return f"Did you mean {near[0]}? " if near else ""


def _refuse(where: str, place: str, what: str, remedy: str) -> NoReturn:
    raise InputError(f"{where}: {place}: {what}", remedy)
