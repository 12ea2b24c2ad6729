"""Compile rules and known names into one table that each process maps at its start.

    table = compile_rules(resolution, open_store("xattr"), [b"/scratch/run7"])

Only rules that can match by name alone are included; the others apply through the known names of
the run. Hint files are untrusted: their content was checked by hintgen/hints/hintfile.py, and
attribute names are checked by the store.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracehint.adapters.creation import table_layout
from tracehint.adapters.creation.resolution import (
    Resolution,
    SettingSet,
    TableSetting,
    fixed_set,
    rule_set,
)
from tracehint.adapters.creation.table_layout import Blob, checksum, place
from tracehint.adapters.stores.base import Gap, Store, merge_gaps, prepare_for_script
from tracehint.hintgen.hints.model import Hint, Maker
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import HOLES, Template
from tracehint.hintgen.match.ruleindex import Entry, cut, entry_of

_KINDS = {name: 1 + number for number, name in enumerate(HOLES)}


@dataclass(frozen=True)
class Compiled:
    """The table's bytes, and counts of its contents."""

    data: bytes
    names: int  # known names
    rules: int  # rules for other names
    left_out: int  # rules that need more than a name
    gaps: dict[Gap, int]  # inexpressible hints, with the number of names and rules


class _Sets:
    """The distinct sets of settings, numbered."""

    def __init__(self) -> None:
        self.all: dict[SettingSet, int] = {}
        self.gaps: list[Gap] = []

    def number(self, found: SettingSet) -> int:
        """Return the number of a set; NONE if the store can express none of it."""
        self.gaps += found.gaps
        return table_layout.NONE if found.empty else self.all.setdefault(found, len(self.all))


def compile_rules(resolution: Resolution, store: Store, roots: Sequence[bytes]) -> Compiled:
    """Compile the table for files below the roots. Raises InputError, UsageError."""
    store = prepare_for_script(store)
    entries = _rank_rules(entry_of(rule) for rule in resolution.hints.rules)
    blob, sets = Blob(), _Sets()
    types = {kind: number for number, kind in enumerate(resolution.hints.maker_types)}
    sections = {"roots": blob.rows(table_layout.ROOT, [blob.text(root) for root in roots])}
    sections["exact"] = _write_exact(blob, sets, resolution, store, types)
    nodes = resolution.nodes or resolution.hints.nodes
    sections |= _write_rules(blob, sets, entries, store, nodes, types)
    sections["sets"] = _write_sets(blob, sets)
    sections["makers"] = _write_makers(blob, resolution.hints.makers, types)
    typed = bool(resolution.bound) or any(entry.rule.made_by for entry in entries)
    return Compiled(
        blob.finish(
            [sections[name] for name in table_layout.SECTIONS], run=os.getpid(), typed=typed
        ),
        names=len(resolution.known),
        rules=len(entries),
        left_out=len(resolution.hints.rules) - len(entries),
        gaps=merge_gaps(sets.gaps),
    )


def _rank_rules(entries: Iterable[Entry]) -> list[Entry]:
    """Return the rules that need only a name or the creating task, in the matcher's order."""
    free = (
        entry
        for entry in entries
        if not entry.siblings and (entry.rule.made_by or not entry.rule.conditions.needs)
    )
    return sorted(free, key=lambda e: (e.order, e.rule.id), reverse=True)


def _write_exact(
    blob: Blob, sets: _Sets, resolution: Resolution, store: Store, types: Mapping[str, int]
) -> tuple[int, int]:
    rows = []
    seen: dict[tuple[tuple[str, str], ...], SettingSet] = {}
    for path, target in resolution.known.items():
        number = table_layout.NONE
        if target is not None:
            hints = tuple(sorted(target.hints.items()))
            if hints not in seen:
                seen[hints] = fixed_set(store, target.hints)
            number = sets.number(seen[hints])
        kind = resolution.bound.get(path)
        needed = table_layout.NONE if kind is None else types[kind]
        rows.append((checksum(path), number, needed, *blob.text(path)))
    empty = (0, table_layout.NONE, table_layout.NONE, 0, 0)
    places = place([row[0] for row in rows])
    return blob.rows(table_layout.EXACT, (empty if i is None else rows[i] for i in places))


def _write_rules(
    blob: Blob,
    sets: _Sets,
    entries: Sequence[Entry],
    store: Store,
    nodes: int | None,
    types: Mapping[str, int],
) -> dict[str, tuple[int, int]]:
    parts: dict[Template, tuple[int, int]] = {}
    ranks: dict[tuple[int, int, int], int] = {}
    numbers: dict[tuple[Hint, ...], int] = {}
    rows = []
    for entry in entries:
        for template in (entry.template, *entry.exclude):
            if template not in parts:
                parts[template] = _write_parts(blob, template)
        excluded = blob.rows(table_layout.PARTS, (parts[other] for other in entry.exclude))
        made_by = [[types.get(kind, table_layout.NONE)] for kind in entry.rule.made_by]
        wanted = blob.rows(table_layout.INDEX, made_by)
        rank = ranks.setdefault(entry.order, len(ranks))
        # two rules of equal rank with different hints conflict: no hint is set
        hint_number = numbers.setdefault(entry.rule.hints, len(numbers))
        number = sets.number(rule_set(store, entry.rule.hints, nodes))
        rows.append((*parts[entry.template], *excluded, *wanted, rank, hint_number, number))
    table = {"rules": blob.rows(table_layout.RULE, rows)}
    return table | _write_index(blob, entries)


def _write_parts(blob: Blob, template: Template) -> tuple[int, int]:
    rows = [
        (_KINDS[part], 0, 0) if isinstance(part, str) else (table_layout.LITERAL, *blob.text(part))
        for part in template.parts
    ]
    return blob.rows(table_layout.PART, rows)


def _write_index(blob: Blob, entries: Sequence[Entry]) -> dict[str, tuple[int, int]]:
    """Index rules by prefix, suffix and slashes, as hintgen/match/ruleindex.py does."""
    combos: dict[tuple[int, int], int] = {}
    buckets: dict[tuple[bytes, int, int], list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        template = entry.template
        head, tail = cut(template.prefix), cut(template.suffix)
        ends = template.prefix[:head] + template.suffix[len(template.suffix) - tail :]
        combo = combos.setdefault((head, tail), len(combos))
        slashes = table_layout.ANY_SLASHES if template.slashes is None else template.slashes
        buckets[ends, combo, slashes].append(number)
    lists = blob.rows(table_layout.INDEX, ([n] for found in buckets.values() for n in found))
    rows, first = [], 0
    for (ends, combo, slashes), found in buckets.items():
        rows.append((checksum(ends, combo, slashes), combo, slashes, first, len(found)))
        first += len(found)
    places = place([row[0] for row in rows])
    return {
        "combos": blob.rows(table_layout.COMBO, combos),
        "buckets": blob.rows(
            table_layout.BUCKET, ((0,) * 5 if i is None else rows[i] for i in places)
        ),
        "lists": lists,
    }


def _write_makers(blob: Blob, makers: Sequence[Maker], types: Mapping[str, int]) -> tuple[int, int]:
    """Write the hash table of words that identify the processes of a task type."""
    words = [to_bytes(maker.word) for maker in makers]
    rows = [
        (checksum(word), types[maker.type], *blob.text(word))
        for word, maker in zip(words, makers, strict=True)
    ]
    places = place([row[0] for row in rows])
    return blob.rows(table_layout.MAKER, ((0,) * 4 if i is None else rows[i] for i in places))


def _write_sets(blob: Blob, sets: _Sets) -> tuple[int, int]:
    rows = []
    for found in sets.all:
        ways = [
            blob.rows(table_layout.SETTING, (_pack(blob, s) for s in way)) for way in found.ways
        ]
        at, count = blob.rows(table_layout.WAY, ways)
        captures = blob.rows(table_layout.INDEX, ([i] for i in found.captures))
        prefix = blob.text(found.prefix)
        rows.append((count, at, *prefix, found.group, captures[1], captures[0]))
    return blob.rows(table_layout.SET, rows)


def _pack(blob: Blob, setting: TableSetting) -> tuple[int, ...]:
    at, length = blob.text(setting.key + b"\0")  # NUL for the system call; not counted
    return at, length - 1, *blob.text(setting.value), *blob.text(setting.tail), setting.flags
