"""The script for stores with tools: one fixed text, and a table of argument vectors.

As for attributes (`script.py`), no name and no value becomes shell text: the driver passes fields
of a NUL-delimited table to the tools as arguments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import Gap, Setting, merge_gaps, translate_once
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.script import (
    MAX_RECORD,
    Script,
    evidence,
    fill_driver,
    nothing_to_say,
    shell_body,
)
from tracehint.errors import UsageError
from tracehint.hintgen.text.escape import comment

if TYPE_CHECKING:
    from tracehint.adapters.plan import TagPlan, Target
    from tracehint.hintgen.hints.model import HintFile

SLOTS = 12  # arguments of a call, program included
_PATH_MARK = "@path"
# Tools for stores without a mount may interpret names as patterns or command lines.
_SAFE_NAME = re.compile(rb"([A-Za-z0-9_.+=,~-][A-Za-z0-9_.+=,~/-]*)?")
_UNSAFE = "the tool could take its name for a pattern: only letters, digits and . _ + = , ~ - pass"
_TOOL_CREATES = "the tool makes the file: give --create, or let its directory's default do it"


def make_call_script(
    hints: HintFile, plan: TagPlan, store: CommandStore, *, inside: bool
) -> Script:
    """Build script and table; with `inside`, the table is part of the text."""
    if store.needs_server() and not store.places.server:
        raise UsageError(
            f"{store.title} needs its server", 'Give a --map file with server = "HOST:PORT".'
        )
    store = store.for_script()
    translated = translate_once(store)
    records: list[bytes] = []
    gaps: list[Gap] = []
    skipped = calls = 0
    for target in plan.targets:
        settings, missing = translated(target)
        gaps += missing
        for setting in settings:
            if target.kind == "file" and store.creates(setting) and not target.create:
                gaps.append(Gap(hint=setting.hint, level="none", reason=_TOOL_CREATES))
                continue
            if not store.mounted and not _SAFE_NAME.fullmatch(target.path):
                gaps.append(Gap(hint=setting.hint, level="none", reason=_UNSAFE))
                continue
            made = _encode_records(store, target, setting)
            if max(map(len, made)) > MAX_RECORD:
                skipped += 1
            else:
                records += made
                calls += 1
    counted = merge_gaps(gaps)
    if not records:
        raise nothing_to_say(plan, store, counted, skipped)
    table = b"".join(records)
    text = fill_driver("call_driver.sh", table, inside=inside)
    text = text.replace("#@WORKER@", shell_body("call_worker.sh"))
    text = text.replace("#@EVIDENCE@", evidence(hints, plan, store, counted))
    return Script(text, table, calls, skipped, counted)


def _encode_records(store: CommandStore, target: Target, setting: Setting) -> list[bytes]:
    """Return the record of the call that sets, and of the one that undoes it, if any."""
    path = target.path if store.mounted else f"{store.base_path()}/".encode() + target.path
    remark = f"{setting.key} ({setting.hint}, {target.rule})"
    calls = {"set": store.argv(setting, _PATH_MARK)}
    if not (target.kind == "file" and store.creates(setting)):
        calls["undo"] = store.unset_argv(setting, _PATH_MARK)
    return [
        b"".join(
            field + b"\0"
            for field in (
                purpose.encode(),
                _encode_kind(store, target, setting),
                path or b"",
                comment(remark)[:200].encode("ascii"),
                *_pad_arguments(argv),
            )
        )
        for purpose, argv in calls.items()
        if argv
    ]


def _pad_arguments(argv: list[str]) -> list[bytes]:
    if len(argv) > SLOTS:
        raise UsageError(
            f"a call of {argv[0]} has more than {SLOTS} arguments", "Shorten the table's command."
        )
    return [part.encode() for part in argv] + [b""] * (SLOTS - len(argv))


def _encode_kind(store: CommandStore, target: Target, setting: Setting) -> bytes:
    if not store.mounted:
        return b"N"
    if target.kind == "directory":
        return b"D"
    return b"C" if store.creates(setting) else b"F"
