"""The setfattr script: one fixed text (driver.sh, worker.sh) and a NUL-delimited table.

No name and no value from a trace becomes shell text. The table is a file beside the script, or,
where the script must be one file (standard output), base64 in a here-document, whose alphabet
cannot end it. Comments pass `escape.comment`, an allow-list of characters.
"""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.plan import TagPlan, Target
from tracehint.adapters.stores.asked import asked_once
from tracehint.adapters.stores.base import (
    Gap,
    Setting,
    Store,
    Translator,
    merge_gaps,
    script_value,
    scripted,
)
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.text.escape import comment
from tracehint.hintgen.text.units import plural, size
from tracehint.version import __version__

MAX_RECORD = 5000  # bytes: 20 records must fit into one argument list of xargs (128 KiB)
_BESIDE = """case $0 in /*) self=$0 ;; *) self=$(pwd)/$0 ;; esac
table() { cat -- "$self.data"; }
if [ ! -r "$self.data" ]; then
    echo "cannot read the table of this script: it must lie beside it and end in .data" >&2
    exit 2
fi"""
_INSIDE = "table() {\n    base64 -d <<'END-OF-TABLE'\n%s\nEND-OF-TABLE\n}"


@dataclass(frozen=True)
class Script:
    """The script's text and its table; `skipped` are paths too long for a record."""

    text: str
    table: bytes
    records: int
    skipped: int
    gaps: dict[Gap, int]


def make_script(hints: HintFile, plan: TagPlan, store: Store, *, inside: bool) -> Script:
    """Build script and table; with `inside`, the table is part of the text."""
    store = scripted(store)
    said = asked_once(store)
    endings: dict[tuple[int, str], tuple[list[Setting], list[bytes]]] = {}
    records: list[bytes] = []
    gaps: list[Gap] = []
    skipped = 0
    for target in plan.targets:
        settings, missing = said(target)
        gaps += missing
        kind = id(settings), target.rule
        if kind not in endings:  # `said` has the same list for the same settings
            endings[kind] = settings, [_ending(setting, target.rule) for setting in settings]
        start = _kind(target) + b"\0" + (target.path or b".") + b"\0"
        for ending in endings[kind][1]:
            if len(start) + len(ending) > MAX_RECORD:
                skipped += 1
            else:
                records.append(start + ending)
    if not records:
        raise nothing_to_say(plan, store, merge_gaps(gaps), skipped)
    table = b"".join(records)
    counted = merge_gaps(gaps)
    text = shell_part("driver.sh")
    text = text.replace("#@WORKER@", shell_part("worker.sh").partition("\n\n")[2])
    text = text.replace("#@TABLE@", table_part(table, inside=inside))
    text = text.replace("#@EVIDENCE@", evidence(hints, plan, store, counted))
    return Script(text, table, len(records), skipped, counted)


def _ending(setting: Setting, rule: str) -> bytes:
    """What is the same in all records of a setting that a rule gives."""
    remark = comment(f"{setting.key} ({setting.hint}, {rule})")[:200].encode("ascii")
    return b"".join(part + b"\0" for part in (setting.key.encode(), script_value(setting), remark))


def table_part(table: bytes, *, inside: bool) -> str:
    """How the script reads its table: a file beside it, or base64 in its own text."""
    return _INSIDE % base64.encodebytes(table).decode().rstrip("\n") if inside else _BESIDE


def nothing_to_say(
    plan: TagPlan, store: Translator, gaps: dict[Gap, int], skipped: int
) -> UsageError:
    """Why there is no setting to write."""
    if not plan.targets:
        return UsageError(
            "the rules name no concrete file, so there is nothing to write",
            "Give the workflow (--workflow F) or a directory with its files (--dir DIR).",
        )
    named = plural(len(plan.targets), "name")
    if skipped:
        return UsageError(
            f"{named}: all names are too long for a script", "Use `tracehint apply` instead."
        )
    reasons = "; ".join(f"{gap.hint}: {gap.reason}" for gap in list(gaps)[:3])
    why = f" ({reasons})" if reasons else ""
    return UsageError(
        f"the rules name {named}, but {store.title} can say none of their hints{why}",
        f"What helps there: {store.about.instead}."
        if store.about.instead
        else "Give another store: --store xattr writes all of them as plain attributes.",
    )


def shell_part(name: str) -> str:
    """A part of the script."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _seen(rule: Rule) -> str:
    """What the rule was learned from, and what it is worth."""
    makers = ", ".join(rule.producers or (rule.producer or "",)).strip(", ") or "an input"
    words = [f"{makers} -> {', '.join(rule.consumers) or 'nobody'}"]
    files, moved, saves = (rule.evidence.get(k) for k in ("files", "bytes", "saves_bytes"))
    if files:
        words.append(f"seen in {plural(files, 'file')} of {size(moved)} in all")
    if saves and saves > 0:
        words.append(f"saves {size(saves)}")
    return ", ".join([*words, f"confidence {rule.confidence:.2f}"])


def _kind(target: Target) -> bytes:
    letters = {("directory", False): b"D", ("directory", True): b"M", ("file", False): b"F"}
    return letters.get((target.kind, target.create), b"C")


def evidence(hints: HintFile, plan: TagPlan, store: Translator, gaps: dict[Gap, int]) -> str:
    """Comment lines: each rule with its pattern, hints, evidence, and the number of files."""
    files = Counter(t.rule for t in plan.targets if t.kind == "file")
    warning = store.about.warning(store.title)
    lines = [f"tracehint {__version__}: storage hints for {store.title}", warning, ""]
    for rule in hints.rules:
        if files[rule.id] == 0:
            continue
        said = ", ".join(
            f"{h.name}={h.value}{' (by formula)' if h.formula else ''}" for h in rule.hints
        )
        what = f"{rule.pattern.replace('_', ' ')} {rule.template}"
        lines.append(f"{rule.id}: {what} ({plural(files[rule.id], 'file')})"[:400])
        lines.append(f"    {said}"[:400])
        lines.append(f"    {_seen(rule)}"[:400])
    folders = sum(t.kind == "directory" for t in plan.targets)
    lines += ["", f"Directory defaults: {folders}."]
    lines += [
        f"No default for {path.decode('utf-8', 'backslashreplace') or '.'}: its files differ "
        f"in {name}"
        for path, name in plan.conflicts[:50]
    ]
    lines += [
        f"Not said ({gap.level}) for {plural(count, 'target')}: {gap.hint}: {gap.reason}"
        if gap.level == "none"
        else f"Approximate for {plural(count, 'target')}: {gap.hint}: {gap.reason}"
        for gap, count in gaps.items()
    ]
    return "\n".join(("# " + comment(line)).rstrip() for line in lines)
