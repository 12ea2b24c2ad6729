"""Kinds of losses, and the one definition of the completeness of a recording.

Completeness is the share of events that were recorded, times UNKNOWN_SCORE if an unknown amount
is missing in addition. Events that a collector never observes are not losses; the analyzer
weighs them (`blind_to`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tracehint.schemas.wording import agree

if TYPE_CHECKING:
    import pyarrow as pa

# How a kind of loss counts: a number of events or rows; an unknown amount; a truncated text.
EVENTS, UNKNOWN, DETAIL = "events", "unknown", "detail"
UNKNOWN_SCORE = 0.9

# kind -> (how it counts, its description, for `agree`)
KINDS: dict[str, tuple[str, str]] = {
    "lifecycle_records": (EVENTS, "{n} process or file [event|events] lost: names may be missing"),
    "extent_records": (EVENTS, "{n} access [record|records] lost: bytes and edges may be missing"),
    "open_table_full": (EVENTS, "{n} open [file|files] not followed: too many at one time"),
    "recursion_misses": (EVENTS, "{n} [event|events] missed inside the kernel"),
    "log_lines": (EVENTS, "{n} [line|lines] of the log could not be read"),
    "spool_write": (EVENTS, "{n} [record|records] could not be written (disk full?)"),
    "missing_rows": (EVENTS, "{n} [row|rows] of the bundle missing"),
    "log_limits": (EVENTS, "{n} [record|records] left out by the limits of the log itself"),
    "damaged_segment": (UNKNOWN, "{n} damaged [part|parts] of the bundle left out"),
    "unreadable_log": (UNKNOWN, "{n} [log or bundle|logs or bundles] could not be read"),
    "killed_process": (UNKNOWN, "{n} [process|processes] killed: only counters are known"),
    "truncated_log": (UNKNOWN, "the log ends in the middle ({n}): what came after is unknown"),
    "killed_recorder": (UNKNOWN, "the recorder was killed: what came after is unknown"),
    "unfollowed_tasks": (UNKNOWN, "{n} [task|tasks] not followed by the recorder of the node"),
    "outliving_processes": (
        UNKNOWN,
        "{n} [process|processes] outlived the command: nothing is known of later accesses",
    ),
    "unknown_calls": (UNKNOWN, "{n} [call|calls] of a kind that the collector does not follow"),
    "credentials_exec": (UNKNOWN, "{n} [program|programs] with changed credentials not followed"),
    "unentered_programs": (
        UNKNOWN,
        "{n} [program|programs] could not be entered (static, setuid "
        "...): what [it|they] read and wrote is unknown",
    ),
    "container_names": (
        UNKNOWN,
        "{n} [process|processes] in a container with names of [its|their] "
        "own for files: bind them at their own paths, with /proc",
    ),
    "path_cut": (DETAIL, "{n} [path|paths] too long and cut"),
    "argv_cut": (DETAIL, "{n} command [line|lines] too long and cut"),
}


def kinds_that(*ways: str) -> list[str]:
    """Return the kinds that count in one of these ways."""
    return [kind for kind, (way, _) in KINDS.items() if way in ways]


def tally(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sum losses by kind, in order of first appearance; negative (damaged) counts are 0."""
    found: dict[str, int] = {}
    for kind, count in rows:
        found[kind] = found.get(kind, 0) + max(0, count)
    return found


def losses_of(table: pa.Table) -> dict[str, int]:
    """Return the tally of the table `losses`."""
    return tally(zip(*(table.column(c).to_pylist() for c in ("kind", "count")), strict=True))


def events(losses: Mapping[str, int]) -> int:
    """Return the number of events that are known to be lost."""
    return sum(n for kind, n in losses.items() if KINDS.get(kind, (UNKNOWN, ""))[0] == EVENTS)


def words(losses: Mapping[str, int]) -> list[str]:
    """Return one sentence per kind."""
    other = "{n} [loss|losses] of kind "
    return [
        agree(n, KINDS[kind][1]) if kind in KINDS else agree(n, other) + kind
        for kind, n in losses.items()
    ]


def score(losses: Mapping[str, int], seen: int, *, whole: bool) -> float:
    """Return the completeness, 0 to 1. seen: recorded events; whole: the recorder finished."""
    lost = events(losses)
    unknown = not whole or any(KINDS.get(k, (UNKNOWN, ""))[0] == UNKNOWN for k in losses)
    if not seen:
        return 0.0 if lost or unknown else 1.0
    return seen / (seen + lost) * (UNKNOWN_SCORE if unknown else 1.0)
