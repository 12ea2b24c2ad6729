"""The host file: nodes on which tasks may run, and the words that start a command on one.

start = "ssh"                     # here, ssh, srun, or a list of words
check = ["ssh", "{host}", "true"] # optional: a node that fails this is not used
[[host]]
name = "node1"
also = ["10.0.0.1"]               # the store's names of the node, if different
slots = 4                         # concurrent tasks; 0: any number
link_mbit = 1000                  # of the node; sets how long a planned task waits for it
minutes = 600                     # longest batch job there, for grouped jobs; 0: unknown
feature = "rack1"                 # Slurm's feature of a group of nodes, if a part may use any

Words of `start` may contain {host}, {cwd} and {command} (the whole command, quoted for a remote
shell); the single word {argv} is replaced by the command's own words. No local shell is used. Only
nodes of this file are ever used: a store that reports another node cannot send a task there.
"""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

MAX_HOSTS = 100_000
MAX_SLOTS = 100_000
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,250}")
_KEYS = frozenset({"name", "also", "slots", "start", "check", "link_mbit", "feature", "minutes"})
_FIELD = re.compile(r"\{([a-z]+)\}")
_REMEDY = "The format of host files is in docs/how-to/start-where-data-is.md."
_FILE = TextFile(kind="A host file", limit="small-bytes", check="Check --hosts.", remedy=_REMEDY)

# name -> words that start a command on a node
STARTS: dict[str, tuple[str, ...]] = {
    "here": ("{argv}",),
    "ssh": ("ssh", "-o", "BatchMode=yes", "--", "{host}", "{command}"),
    "srun": (
        "srun",
        "--nodelist={host}",
        "--nodes=1",
        "--ntasks=1",
        "--chdir={cwd}",
        "--",
        "{argv}",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Host:
    """A node: its name for `start`, the names that the store may use, and its start command."""

    name: str
    also: tuple[str, ...] = ()
    slots: int = 0
    start: tuple[str, ...] = STARTS["here"]
    check: tuple[str, ...] = ()
    link_mbit: float = 1000.0
    feature: str = ""
    minutes: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the node."""
        return (self.name, *self.also)


def read_hosts(path: Path) -> tuple[Host, ...]:
    """Read a host file. Raise InputError with the invalid key."""
    data = _FILE.toml(path)
    unknown = sorted(set(data) - {"start", "check", "host"})
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0][:80]!r}", _REMEDY)
    rows = data.get("host")
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_HOSTS:
        raise InputError(f"{path} has no [[host]], or too many", _REMEDY)
    start = _start(str(path), data.get("start", "ssh"))
    check = _words(str(path), "check", data.get("check", []))
    hosts = tuple(_host(str(path), row, start, check) for row in rows)
    names = [name for host in hosts for name in host.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: the name {twice!r} is given twice", _REMEDY)
    return hosts


def _host(origin: str, row: Any, start: tuple[str, ...], check: tuple[str, ...]) -> Host:
    if not isinstance(row, dict) or set(row) - _KEYS:
        raise InputError(f"{origin}: a [[host]] may only have {', '.join(sorted(_KEYS))}", _REMEDY)
    also, slots = row.get("also", []), row.get("slots", 0)
    names = [row.get("name"), *(also if isinstance(also, list) else [None])]
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(f"{origin}: {str(name)[:80]!r} is not a node name", _REMEDY)
    for key in ("slots", "minutes"):
        count = row.get(key, 0)
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_SLOTS:
            raise InputError(f"{origin}: {key} of {names[0]} is not a number from 0", _REMEDY)
    link, feature = row.get("link_mbit", 1000.0), row.get("feature", "")
    if isinstance(link, bool) or not isinstance(link, (int, float)) or not 0.001 <= link <= 1e8:
        raise InputError(f"{origin}: link_mbit of {names[0]} is not a number from 0.001", _REMEDY)
    if not isinstance(feature, str) or (feature and not NAME.fullmatch(feature)):
        raise InputError(f"{origin}: feature of {names[0]} is not a plain name", _REMEDY)
    return Host(
        name=names[0],
        also=tuple(names[1:]),
        slots=slots,
        start=_start(origin, row["start"]) if "start" in row else start,
        check=_words(origin, "check", row["check"]) if "check" in row else check,
        link_mbit=float(link),
        feature=feature,
        minutes=row.get("minutes", 0),
    )


def _start(origin: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value in STARTS:
        return STARTS[value]
    words = _words(origin, "start", value)
    if not any("{argv}" in word or "{command}" in word for word in words):
        raise InputError(f"{origin}: start has neither {{argv}} nor {{command}}", _REMEDY)
    return words


def _words(origin: str, key: str, value: Any) -> tuple[str, ...]:
    known = {"host", "cwd", "command", "argv"} if key == "start" else {"host"}
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        names = ", ".join(STARTS)
        raise InputError(f"{origin}: {key} is neither a list of words nor one of {names}", _REMEDY)
    for word in value:
        for field in _FIELD.findall(word):
            if field not in known or (field == "argv" and word != "{argv}"):
                raise InputError(f"{origin}: {key} cannot contain {word[:80]!r}", _REMEDY)
    return tuple(value)


def by_name(hosts: Sequence[Host]) -> dict[str, Host]:
    """Map every name of every node to the node; the part after the first dot is optional."""
    table = {
        name.partition(".")[0]: host
        for host in hosts
        for name in host.names
        if not name[0].isdigit()
    }
    table.update({name: host for host in hosts for name in host.names})
    return table


def find(table: Mapping[str, Host], node: str) -> Host | None:
    """Return the node that a store reports as `node`, with or without its domain and port."""
    bare = node.rpartition(":")[0] if node.count(":") == 1 else node
    short = bare.partition(".")[0]
    return table.get(node) or table.get(bare) or (None if short.isdigit() else table.get(short))


def start_words(host: Host, argv: Sequence[str], cwd: str) -> list[str]:
    """Return the words that run `argv` on the node in the directory `cwd`.

    On the node itself the command runs directly, unless the node has its own template of words.
    """
    template = host.start
    if template in (STARTS["ssh"], STARTS["srun"]) and is_here(host):
        template = STARTS["here"]
    command = f"cd -- {shlex.quote(cwd)} && exec {shlex.join(argv)}"
    fields = {"host": host.name, "cwd": cwd, "command": command}
    out: list[str] = []
    for word in template:
        if word == "{argv}":
            out += argv
        else:
            out.append(_FIELD.sub(lambda found: fields[found.group(1)], word))
    return out


def is_here(host: Host) -> bool:
    """Whether this process runs on the node."""
    own = socket.gethostname()
    return any(name in (own, own.partition(".")[0], "localhost") for name in host.names)
