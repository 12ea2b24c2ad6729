"""Which objects a file of CephFS consists of, and on which hosts they lie.

The rule is Ceph's documented striping: units of `unit` bytes go round over `count` objects until
each holds `size` bytes; then come the next `count` objects.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tracehint.adapters.stores.base import Location
from tracehint.adapters.stores.ceph_ask import Question
from tracehint.adapters.stores.places import NAME

MAX_ASKED = 4096  # objects of one file; more than that are sampled evenly, and it is said
FIELDS = ("stripe_unit", "stripe_count", "object_size")

Ask = Callable[[Sequence[Question]], list[str]]  # questions -> an answer in JSON for each


@dataclass(frozen=True)
class Striping:
    """A layout, in bytes and objects."""

    unit: int
    count: int
    size: int


def objects(striping: Striping, length: int) -> Sequence[int]:
    """Numbers of the objects that hold the first `length` bytes of a file; holes are counted."""
    if length <= 0 or striping.unit <= 0 or striping.count <= 0:
        return range(0)
    units = -(-length // striping.unit)
    per_object = max(1, striping.size // striping.unit)
    full, rest = divmod(units, per_object * striping.count)
    last = min(rest, striping.count)  # objects of the last round that got a unit
    return range(full * striping.count + last)


def locate_files(fds: Sequence[int], ask: Ask) -> list[Location | None]:
    """Hosts of the OSDs that hold each open file's objects, those with most objects first.

    One conversation with the monitors for all of them. Raises OSError.
    """
    files = [_objects_of(fd) for fd in fds]
    asked = [command for _, commands, _ in files for command in commands]
    if not asked:
        return [None] * len(files)
    answers = iter(ask([*asked, Question("osd tree")]))
    acting = [json.loads(next(answers))["acting"] for _ in asked]
    host = _hosts(json.loads(next(answers))["nodes"])
    out: list[Location | None] = []
    at = 0
    for pool, commands, total in files:
        copies: dict[str, int] = {}
        for osds in acting[at : at + len(commands)]:
            for name in dict.fromkeys(host(osd) for osd in osds):
                copies[name] = copies.get(name, 0) + 1
        at += len(commands)
        nodes = tuple(sorted(copies, key=lambda name: -copies[name]))
        detail = {"copies": copies, "chunks": len(commands), "objects": total, "pool": pool}
        out.append(Location(nodes=nodes, detail=detail) if nodes else None)
    return out


def _objects_of(fd: int) -> tuple[str, list[Question], int]:
    """(pool, the question for each object, number of objects) of an open file."""
    info = os.fstat(fd)
    fields = fields_of(os.getxattr(fd, "ceph.file.layout"))
    pool, space = fields.get("pool", ""), fields.get("pool_namespace", "")
    if not NAME.fullmatch(pool) or (space and not NAME.fullmatch(space)):
        raise OSError(errno.EINVAL, "the name of its pool cannot stand in a command")
    striping = Striping(*(int(fields[name]) for name in FIELDS))
    numbers = objects(striping, info.st_size)
    step = max(1, -(-len(numbers) // MAX_ASKED))
    where = {"nspace": space} if space else {}
    asked = [
        Question("osd map", {"pool": pool, "object": f"{info.st_ino:x}.{n:08x}", **where})
        for n in numbers[::step]
    ]
    return pool, asked, len(numbers)


def fields_of(value: bytes) -> dict[str, str]:
    """The fields of a layout as Ceph prints it."""
    return dict(part.partition("=")[::2] for part in os.fsdecode(value).split(" "))


def _hosts(tree: Sequence[Mapping[str, object]]) -> Callable[[int], str]:
    """OSD -> name of its host in the CRUSH map."""
    table: dict[int, str] = {}
    for node in tree:
        children = node.get("children")
        if node.get("type") == "host" and isinstance(children, list):
            table.update((child, str(node["name"])) for child in children)
    return lambda osd: table.get(osd, f"osd.{osd}")
