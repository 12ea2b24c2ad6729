"""The table for `tracehint-tag`: attributes to set before or after each task (adapters/tag).

    tracehint-tags 1 <number of tasks, 10 digits>\\n      28 bytes
    <offset, 11 digits> <length, 11 digits>\\n            24 bytes for each task
    kind \\0 path \\0 attribute \\0 value in hexadecimal \\0   records

A task finds its records with two reads, independent of the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.paths import inside
from tracehint.adapters.stores.base import (
    Gap,
    Store,
    capability_key,
    prepare_for_script,
    script_value,
    too_late,
)
from tracehint.adapters.stores.script import TAGGER, find_tagger
from tracehint.errors import MissingDependencyError, UsageError

HEADER, INDEX = 28, 24
_LATE = "an input that exists already: the store places data when they are written"
_AFTER = (
    "an output tagged after its rule ends: the store places data when they are written; "
    "directory defaults take effect, and --precreate creates outputs beforehand"
)
_OUTSIDE = "a file outside the directory of the workflow, or a name that is too long"
_TOO_LATE = {"F": _LATE, "A": _AFTER}  # kinds of files that hold data when they are tagged
MAX_RECORD = 6000  # bytes
_DRIVER = Path(__file__).resolve().parent.parent / "tag" / "tag.sh"


@dataclass(frozen=True, kw_only=True)
class TagTarget:
    """One file or directory to tag before or after a task.

    `kind`: D directory, F file, A output that is tagged after the task, C file to create (removed
    again if the task does not write it), K file to create and keep. Directories are never created:
    a task that runs `mkdir out` would fail.
    """

    path: bytes
    kind: str
    hints: dict[str, str]


def encode(
    tasks: Sequence[Sequence[TagTarget]], store: Store, *, allow_trusted: bool = False
) -> tuple[bytes, list[Gap], int]:
    """Return the table, the hints that the store cannot express, and the number of settings."""
    store = prepare_for_script(store)
    payload = bytearray()
    index: list[tuple[int, int]] = []
    gaps: list[Gap] = []
    count = 0
    start = HEADER + INDEX * len(tasks)
    for targets in tasks:
        begin = len(payload)
        for target in targets:
            kind = "directory" if target.kind == "D" else "file"
            why = _TOO_LATE.get(target.kind)
            late = too_late(store, target.hints) if why else {}
            gaps += [
                Gap(hint=capability_key(n, v), level="none", reason=why or "")
                for n, v in late.items()
            ]
            hints = {n: v for n, v in target.hints.items() if n not in late}
            settings, missing = store.translate(hints, kind)  # type: ignore[arg-type]
            gaps += missing
            for setting in settings:
                store.check_key(setting.key, allow_trusted=allow_trusted)
                record = b"\0".join(
                    (
                        target.kind.encode(),
                        target.path or b".",
                        setting.key.encode(),
                        script_value(setting),
                        b"",
                    )
                )
                if len(record) > MAX_RECORD or (target.path and not inside(target.path)):
                    gaps.append(Gap(hint=setting.hint, level="none", reason=_OUTSIDE))
                    continue
                payload += record
                count += 1
        index.append((start + begin, len(payload) - begin))
    head = b"tracehint-tags 1 %010d\n" % len(tasks)
    entries = b"".join(b"%011d %011d\n" % pair for pair in index)
    return head + entries + bytes(payload), gaps, count


def tag_files(folder: Path, table: bytes) -> dict[Path | None, bytes]:
    """Return the files of a tag folder: driver, table, and the program that reads it."""
    program = find_tagger()
    if program is None:
        raise MissingDependencyError(f"{TAGGER} is not built", "Build it: make tracer")
    return {
        folder / "tag": _DRIVER.read_bytes(),
        folder / "table": table,
        folder / "helper": program.read_bytes(),
    }


def check_folder_name(name: str) -> None:
    """Raise UsageError for unusual characters: the folder's name becomes part of commands."""
    import re

    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise UsageError(
            f"the output's name {name[:80]!r} cannot be part of commands",
            "Use letters, digits, dots, dashes and underscores for -o.",
        )
