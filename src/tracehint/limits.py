"""Limits for reading input files; an environment variable can raise or lower each of them.

    TRACEHINT_LIMITS=rows=50_000_000,yaml-values=20_000_000 tracehint import ...

Each row of LIMITS is one limit; `limit(NAME)` returns its number, `limit_error` the error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tracehint.errors import InputError, UsageError

VARIABLE = "TRACEHINT_LIMITS"
_MOST = 1 << 62


@dataclass(frozen=True)
class Limit:
    """A maximum of `most` `unit`; `bounds` names what it limits."""

    most: int
    unit: str
    bounds: str


LIMITS: dict[str, Limit] = {
    "match-work": Limit(
        1_000,
        "steps of matching",
        "work of matching a name with all rules of a hint file; a step covers 128 bytes. A "
        "name that needs more gets no hint, and is counted as too costly",
    ),
    "hint-rules": Limit(20_000, "rules", "rules of a hint file"),
    "plan-rows": Limit(5_000_000, "rows", "tasks, and files, of a plan in a hint file"),
    "small-bytes": Limit(4 << 20, "bytes", "store tables, store maps, host files, configurations"),
    "hints-bytes": Limit(256 << 20, "bytes", "hint files, baselines, output of `locate`"),
    "names-bytes": Limit(256 << 20, "bytes", "Makeflow files that hints go into, lists of names"),
    "toml-values": Limit(200_000, "values", "dots, brackets, commas and lines of a TOML file"),
    "json-values": Limit(
        10_000_000,
        "values",
        "commas and brackets of a JSON file that is read whole, or of one item of one that is "
        "read in parts; a value takes about 100 bytes of memory",
    ),
    "analysis-values": Limit(100_000_000, "values", "the same for the JSON of `analyze`"),
    "text-bytes": Limit(1 << 30, "bytes", "a text file of an engine, unpacked"),
    "unpack-ratio": Limit(
        200, "times the packed size", "unpacked size of gzip, bzip2 or xz files, if over 64 MiB"
    ),
    "line-bytes": Limit(16 << 20, "bytes in one line", "lines of engines' logs"),
    "rows": Limit(20_000_000, "rows", "tasks, and files of tasks, in an engine's graph"),
    "strange-rows": Limit(100_000, "entries without a name", "task entries of a WfFormat file"),
    "workflow-rules": Limit(500_000, "rules", "rules of a Makeflow file"),
    "substituted-bytes": Limit(
        1 << 29, "characters", "text that variables of a Makeflow file expand to"
    ),
    "yaml-values": Limit(5_000_000, "values", "YAML of Pegasus and kickstart"),
    "jx-bytes": Limit(256 << 20, "bytes", "output of jx2json for a JX workflow"),
    "jx-seconds": Limit(60, "seconds of processor time", "evaluation of a JX workflow by jx2json"),
    "item-bytes": Limit(256 << 20, "characters", "one task or file of a WfFormat instance"),
    "darshan-names": Limit(5_000_000, "names", "file names of one Darshan log"),
    "strace-line": Limit(8 << 20, "bytes", "a line of a strace log; a longer one is cut"),
    "strace-pending": Limit(
        100_000, "calls", "unfinished calls of a strace log that are kept; others are counted"
    ),
    "bundle-rows": Limit(4_000_000_000, "rows", "one Parquet file of a bundle"),
    "bundle-rows-per-byte": Limit(
        100, "rows per byte", "Parquet files of a bundle with more than ten million rows"
    ),
    "bundle-ratio": Limit(
        1_000,
        "times its size",
        "unpacked size of a Parquet file of a bundle by its footer, if over 1 GiB",
    ),
    "bundle-text-bytes": Limit(
        16 << 30, "bytes", "text of all rows in one column of a Parquet file"
    ),
    "cache-bytes": Limit(
        1 << 30, "bytes", "all cached analyses of a user (docs/reference/cache.md)"
    ),
}


def limit(name: str) -> int:
    """Return the limit in force. Raises UsageError for an invalid TRACEHINT_LIMITS."""
    return _parse_limits(os.environ.get(VARIABLE, "")).get(name, LIMITS[name].most)


def check(name: str, what: str, count: int) -> None:
    """Raise InputError, which names `what`, if `count` exceeds the limit."""
    if count > limit(name):
        raise limit_error(name, what)


def limit_error(name: str, what: str) -> InputError:
    """Return the error for a file, or a part of it, that exceeds the limit."""
    return InputError(
        f"{what}: more than {limit(name):,} {LIMITS[name].unit}",
        f"If this is intended, set {VARIABLE}={name}=N (docs/reference/limits.md).",
    )


@lru_cache(maxsize=8)
def _parse_limits(text: str) -> dict[str, int]:
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, number = part.partition("=")
        digits = number.replace("_", "")
        if name not in LIMITS or not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise UsageError(
                f"{VARIABLE}: {part[:80]!r} is not NAME=N", "Limits: " + ", ".join(LIMITS)
            )
        found[name] = min(int(digits), _MOST)
    return found


def values_of(text: str | bytes) -> int:
    """Return an upper bound of the values in JSON text: commas and opening brackets, plus one."""
    marks: tuple[Any, ...] = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    return 1 + sum(text.count(mark) for mark in marks)
