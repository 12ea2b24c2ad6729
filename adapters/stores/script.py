"""The script that sets attributes: one fixed text (driver.sh) and a NUL-delimited table.

No name and no value from a trace becomes shell text. The table is a file beside the script, or, if
the script must be one file (standard output), base64 in a here-document, whose delimiter is not
valid base64. Comments pass `escape.comment`, an allow-list of characters.
"""

from __future__ import annotations

import base64
import shlex
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import (
    Gap,
    Setting,
    Store,
    Translator,
    merge_gaps,
    prepare_for_script,
    script_value,
    translate_once,
)
from tracehint.adapters.stores.table import TableStore
from tracehint.errors import UsageError
from tracehint.hintgen.text.escape import comment
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.adapters.plan import TagPlan, Target
    from tracehint.hintgen.hints.model import HintFile, Rule

MAX_RECORD = 5000  # bytes: 20 records must fit into one argument list of xargs (128 KiB)
TAGGER = "tracehint-tag"
_BUILT = Path(__file__).resolve().parent.parent / "tag" / "bin" / TAGGER
_EXTERNAL = """case $0 in /*) self=$0 ;; *) self=$(pwd)/$0 ;; esac
table() { cat -- "$self.data"; }
if [ ! -r "$self.data" ]; then
    echo "cannot read the table of this script: it must be beside it and end in .data" >&2
    exit 2
fi"""
_EMBEDDED = "table() {\n    base64 -d <<'END-OF-TABLE'\n%s\nEND-OF-TABLE\n}"


@dataclass(frozen=True)
class Script:
    """The script's text and its table; `skipped`: settings too long for a record."""

    text: str
    table: bytes
    records: int
    skipped: int
    gaps: dict[Gap, int]


def make_script(hints: HintFile, plan: TagPlan, store: Store, *, inside: bool) -> Script:
    """Build script and table; with `inside`, the table is part of the text."""
    store = prepare_for_script(store)
    translated = translate_once(store)
    endings: dict[tuple[int, str], tuple[list[Setting], list[bytes]]] = {}
    records: list[bytes] = []
    gaps: list[Gap] = []
    skipped = 0
    for target in plan.targets:
        settings, missing = translated(target)
        gaps += missing
        kind = id(settings), target.rule
        if kind not in endings:  # `translated` returns the same list for the same settings
            endings[kind] = settings, [_encode_rule(setting, target.rule) for setting in settings]
        start = _encode_kind(target) + b"\0" + (target.path or b".") + b"\0"
        for ending in endings[kind][1]:
            if len(start) + len(ending) > MAX_RECORD:
                skipped += 1
            else:
                records.append(start + ending)
    if not records:
        raise nothing_to_say(plan, store, merge_gaps(gaps), skipped)
    prefix = store.prefix if isinstance(store, TableStore) else ""
    table = b"".join([b"S\0%s\0%s\0\0\0" % (store.name.encode(), prefix.encode()), *records])
    counted = merge_gaps(gaps)
    text = fill_driver("driver.sh", table, inside=inside)
    text = text.replace("#@PROGRAM@", shlex.quote(str(find_tagger() or "")))
    text = text.replace("#@EVIDENCE@", evidence(hints, plan, store, counted))
    return Script(text, table, len(records), skipped, counted)


def find_tagger() -> Path | None:
    """Return the `tracehint-tag` of this package, beside the interpreter, or on the path."""
    found = shutil.which(TAGGER)
    places = [_BUILT, Path(sys.executable).parent / TAGGER, *([Path(found)] if found else [])]
    return next((place for place in places if place.is_file()), None)


def _encode_rule(setting: Setting, rule: str) -> bytes:
    """Return the fields that all records of a rule's setting share."""
    remark = comment(f"{setting.key} ({setting.hint}, {rule})")[:200].encode("ascii")
    return b"".join(part + b"\0" for part in (setting.key.encode(), script_value(setting), remark))


def fill_driver(name: str, table: bytes, *, inside: bool) -> str:
    """Return a driver with its options, and its table beside it or as base64 in its text."""
    text = shell_part(name).replace("#@OPTIONS@", shell_body("options.sh").rstrip())
    source = _EMBEDDED % base64.encodebytes(table).decode().rstrip("\n") if inside else _EXTERNAL
    return text.replace("#@TABLE@", source)


def nothing_to_say(
    plan: TagPlan, store: Translator, gaps: dict[Gap, int], skipped: int
) -> UsageError:
    """Return the error with the reason why there is no setting to write."""
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
        f"the rules name {named}, but {store.title} supports none of their hints{why}",
        f"Alternative: {store.about.instead}."
        if store.about.instead
        else "Give another store: --store xattr writes all of them as plain attributes.",
    )


def shell_part(name: str) -> str:
    """Read a part of the script."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def shell_body(name: str) -> str:
    """Read a part to embed in another one, without its first comment."""
    return shell_part(name).partition("\n\n")[2]


def _rule_evidence(rule: Rule) -> str:
    """Return the rule's tasks, evidence, savings and confidence as text."""
    makers = ", ".join(rule.producers or (rule.producer or "",)).strip(", ") or "an input"
    words = [f"{makers} -> {', '.join(rule.consumers) or 'nobody'}"]
    evidence = rule.evidence
    saves = evidence.get("saves_bytes", 0)
    if files := evidence["files"]:
        words.append(f"seen in {plural(files, 'file')} of {size(evidence['bytes'])} in all")
    if saves > 0:
        words.append(f"saves {size(saves)}")
    return ", ".join([*words, f"confidence {rule.confidence:.2f}"])


def _encode_kind(target: Target) -> bytes:
    letters = {("directory", False): b"D", ("directory", True): b"M", ("file", False): b"F"}
    return letters.get((target.kind, target.create), b"C")


def evidence(hints: HintFile, plan: TagPlan, store: Translator, gaps: dict[Gap, int]) -> str:
    """Return comment lines: each rule with pattern, hints, evidence and number of files."""
    files = Counter(t.rule for t in plan.targets if t.kind == "file")
    warning = store.about.warning(store.title)
    lines = [f"tracehint {__version__}: storage hints for {store.title}", warning, ""]
    for rule in hints.rules:
        if files[rule.id] == 0:
            continue
        reasons = ", ".join(
            f"{h.name}={h.value}{' (by formula)' if h.formula.fn else ''}" for h in rule.hints
        )
        what = f"{rule.pattern.replace('_', ' ')} {rule.template}"
        lines.append(f"{rule.id}: {what} ({plural(files[rule.id], 'file')})"[:400])
        lines.append(f"    {reasons}"[:400])
        lines.append(f"    {_rule_evidence(rule)}"[:400])
    folders = sum(t.kind == "directory" for t in plan.targets)
    lines += ["", f"Directory defaults: {folders}."]
    lines += [
        f"No default for {path.decode('utf-8', 'backslashreplace') or '.'}: its files differ "
        f"in {name}"
        for path, name in plan.conflicts[:50]
    ]
    lines += [
        f"Not expressible ({gap.level}) for {plural(count, 'target')}: {gap.hint}: {gap.reason}"
        if gap.level == "none"
        else f"Approximate for {plural(count, 'target')}: {gap.hint}: {gap.reason}"
        for gap, count in gaps.items()
    ]
    return "\n".join(("# " + comment(line)).rstrip() for line in lines)
