"""Hints of a file at its creation: by its exact name, otherwise by the rules' templates.

Names of the run that the rules were learned from are resolved with all recorded facts (their
writers and readers), any other name by the name alone. The compiled table
(adapters/creation/rule_table.py) and `verify` give the same results.

A program that writes `x.part` or `tmpab12cd34` and renames it at the end creates its file under a
name that matches no rule. The recorded run shows the renames: the rule of the last name also
applies to the first one. If names of one shape became files with different hints, they get no
rule.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.creation import table_layout
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.plan import Target, build_plan
from tracehint.adapters.stores.base import Gap, Setting, Store
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.moosefs import KEY as MOOSEFS_KEY
from tracehint.adapters.stores.moosefs import MooseFs
from tracehint.adapters.stores.places import Placing
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.mapping import Scale, value_of
from tracehint.hintgen.hints.model import Hint, HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_bytes, to_text
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.match.match import Declared, Matcher

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


_MAX_RULES = 5_000  # maximum number of rules for renamed files
MIN_NAMES, MIN_LETTERS = 3, 4  # minimum number, and of differing letters, of generated names
_PLAIN = re.compile(rb"[A-Za-z0-9_]+")


def made_as(bundle: Bundle, resolution: Resolution, roots: Sequence[bytes]) -> list[Rule]:
    """Return at most 5,000 rules for first names; `roots`: the data roots, longest first."""
    pairs = [(made, last) for made, last in _renamed_files(bundle, roots) if made != last]
    targets = resolution.resolve([last for _, last in pairs])
    kinds: dict[str, list[tuple[bytes, Target | None]]] = defaultdict(list)
    for (made, _), template, target in zip(pairs, _templates(pairs), targets, strict=True):
        kinds[template].append((made, target))
    rules = []
    for template, files in kinds.items():
        target = files[0][1]
        if target is None or any(t is None or t.hints != target.hints for _, t in files):
            continue
        try:
            rules.append(_make_rule(template, target, [path for path, _ in files]))
        except InputError:  # the shape is too general for a rule
            continue
    return rules[:_MAX_RULES]


def _renamed_files(bundle: Bundle, roots: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield (first name, last name), below the roots, of created and renamed files."""
    import duckdb

    con = duckdb.connect(":memory:")
    con.register("names", bundle.tables["names"])
    rows = con.execute(
        """SELECT arg_min(path, seq) FILTER (op = 'create'),
                  arg_max(new_path, seq) FILTER (op = 'rename')
           FROM names WHERE op IN ('create', 'rename') GROUP BY file
           HAVING count(*) FILTER (op = 'rename') > 0 AND count(*) FILTER (op = 'create') > 0"""
    ).fetchall()
    for made, last in rows:
        names = _path_below_root(made, roots), _path_below_root(last, roots)
        if all(names):
            yield names


def _path_below_root(path: bytes, roots: Sequence[bytes]) -> bytes:
    """Return the path relative to its root; empty: outside of all roots."""
    for root in roots:
        start = root.rstrip(b"/") + b"/"
        if path.startswith(start) and inside(path[len(start) :]):
            return path[len(start) :]
    return b""


def _templates(pairs: Sequence[tuple[bytes, bytes]]) -> list[str]:
    """Return a template per pair: the shape of a name with a random part, else the name."""
    import pyarrow as pa

    from tracehint.hintgen.text.masks import RANDOM_PART, shapes_of

    if not pairs:
        return []
    paths, sure = [made for made, _ in pairs], _find_generated_names(pairs)
    random = re.compile(RANDOM_PART.encode())
    shapes = shapes_of(pa.array(paths, pa.binary())).to_pylist()
    shapes = [
        shape if random.search(shape) else sure.get(path, shape)
        for path, shape in zip(paths, shapes, strict=True)
    ]
    return [
        _convert_shape(shape) if random.search(shape) else to_text(path, braces=True)
        for path, shape in zip(paths, shapes, strict=True)
    ]


def _find_generated_names(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Map generated names to their shape: names of one directory and length that differ in one
    part, which does not occur in the last names."""
    places: dict[tuple[bytes, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    for made, last in pairs:
        folder, _, name = made.rpartition(b"/")
        places[folder, len(name)].append((made, last))
    shapes = {}
    for same in places.values():
        names = [made for made, _ in same]
        prefix = _find_common_prefix(names)
        suffix = _find_common_prefix([name[len(prefix) :][::-1] for name in names])[::-1]
        parts = [name[len(prefix) : len(name) - len(suffix)] for name in names]
        unrelated = all(part not in last for part, (_, last) in zip(parts, same, strict=True))
        long = min(map(len, parts)) >= MIN_LETTERS and all(map(_PLAIN.fullmatch, parts))
        if len(set(parts)) >= MIN_NAMES and unrelated and long:
            shapes.update(dict.fromkeys(names, prefix + b"\0r" + suffix))
    return shapes


def _find_common_prefix(names: Sequence[bytes]) -> bytes:
    """Return the longest common prefix."""
    low, high = min(names), max(names)
    equal = (at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b)
    return low[: next(equal, min(len(low), len(high)))]


def _convert_shape(shape: bytes) -> str:
    """Convert a shape of hintgen/text/masks.py to a template."""
    from tracehint.hintgen.text.masks import MARKS

    first, *rest = shape.split(b"\0")
    parts = [to_text(first, braces=True)]
    for part in rest:
        parts += ["{" + MARKS[chr(part[0])] + "}", to_text(part[1:], braces=True)]
    return "".join(parts)


def _make_rule(template: str, target: Target, paths: Sequence[bytes]) -> Rule:
    parsed = parse(template)
    return Rule(
        id=f"{target.rule}-made-as-{template}"[:200],
        template=template,
        regex=parsed.regex,
        directory=to_text(parsed.directory),
        producer=None,
        consumers=(),
        pattern=target.pattern,
        hints=tuple(Hint(name, value, "create") for name, value in target.hints.items()),
        confidence=0.5,
        evidence={"files": len(paths), "bytes": 0},
        examples=tuple(to_text(path) for path in paths[:5]),
        producers=(),
    )


@dataclass(frozen=True)
class Resolution:
    """Hints by exact name (`known`; None: no hints, even if a template matches), then by rule.

    `bound`: path -> required type of the creating task, if the name alone does not determine the
    use; a file of that name from another task is an unknown file.
    """

    hints: HintFile
    known: Mapping[bytes, Target | None]
    nodes: int | None = None
    bound: Mapping[bytes, str] = field(default_factory=dict)

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self.hints)

    def resolve(
        self, paths: Iterable[bytes], makers: Sequence[str | None] | None = None
    ) -> list[Target | None]:
        """Return the hints of each path (below the data root); None: no hints.

        `makers`: type of each file's creating task, None if unknown; without the list, types are
        not checked and rules that require one do not match.
        """
        wanted = list(zip(paths, makers, strict=True)) if makers else [(p, None) for p in paths]
        asked = bool(makers)
        others = [pair for pair in wanted if not self._is_known(*pair, asked)]
        found = dict(zip(others, self._match(others, asked), strict=True))
        return [found[pair] if pair in found else self.known[pair[0]] for pair in wanted]

    def _is_known(self, path: bytes, maker: str | None, asked: bool) -> bool:
        """Whether the exact name determines the hints."""
        return path in self.known and (not asked or self.bound.get(path, maker) == maker)

    def _match(self, pairs: list[tuple[bytes, str | None]], asked: bool) -> list[Target | None]:
        if not self.hints.rules:
            return [None] * len(pairs)
        targets: list[Target | None] = []
        known = Declared(makers=[maker for _, maker in pairs]) if asked else None
        for found in self._matcher.match([path for path, _ in pairs], known, nodes=self.nodes):
            hinted = found.rule is not None and found.values and inside(found.path)
            targets.append(
                Target(
                    path=found.path,
                    kind="file",
                    hints=found.values,
                    rule=found.rule.id,
                    pattern=found.pattern,
                )
                if hinted and found.rule is not None
                else None
            )
        return targets


def resolution_of(hints: HintFile, paths: Paths | None, nodes: int | None = None) -> Resolution:
    """Return the resolution of a hint file and of the names known before the run."""
    paths = paths or Paths(files=())
    own = [path for path in _named_paths(hints) if path not in set(paths.declared)]
    known = Paths(files=own, declared=paths.declared, known=paths.known, names=paths.names)
    plan = build_plan(hints, known, directories=False, nodes=nodes)
    found: dict[bytes, Target | None] = dict.fromkeys((*known.declared, *known.files))
    found |= {target.path: target for target in plan.targets}
    bound = _hints_by_use(hints, known, {target.path: target.rule for target in plan.targets})
    planned = {target.path: target for target in _planned_files(hints)}
    return Resolution(
        hints,
        found | planned,
        nodes,
        {path: kind for path, kind in bound.items() if path not in planned},
    )


def _hints_by_use(hints: HintFile, known: Paths, fired: Mapping[bytes, str]) -> dict[bytes, str]:
    """Map recorded files whose rule needs more than the name to the type of their creating task,
    if tasks of that type are reliably identified when they create files."""
    sure = {maker.type for maker in hints.makers if maker.sure}
    needy = {rule.id for rule in hints.rules if rule.conditions.needs}
    kinds = known.known.producer_types if known.known is not None else None
    if not sure or kinds is None:
        return {}
    pairs = zip(known.declared, kinds, strict=True)
    return {path: kind for path, kind in pairs if kind in sure and fired.get(path) in needy}


def _planned_files(hints: HintFile) -> Iterator[Target]:
    """Yield the files of a plan for one run, which overrides the rules."""
    plan = hints.plan
    for file in plan.files if plan is not None else ():
        path = to_bytes(file.path)
        if plan is not None and inside(path) and file.hints:
            yield Target(
                path=path, kind="file", hints=file.hints, rule=plan.strategy, pattern="plan"
            )


def _named_paths(hints: HintFile) -> list[bytes]:
    """Return the paths for which a rule stores values per file."""
    paths: dict[bytes, None] = {}
    for rule in hints.rules:
        for text in rule.per_file:
            try:
                path = to_bytes(text)
            except InputError:
                continue
            if inside(path):
                paths[path] = None
    return list(paths)


NEEDS_TOOL = "only its own tool can set it, beforehand, for the directory (`tracehint apply`)"
_GROUP_MARK = "0tracehint.group0"  # placeholder for the group, which is known at creation


@dataclass(frozen=True)
class TableSetting:
    """One setting in the table: the group's name is inserted between `value` and `tail`."""

    key: bytes
    value: bytes
    tail: bytes = b""
    flags: int = 0


@dataclass(frozen=True)
class SettingSet:
    """Settings of a rule. `ways`: alternatives, chosen by the checksum of the group's name."""

    ways: tuple[tuple[TableSetting, ...], ...]
    prefix: bytes = b""
    captures: tuple[int, ...] = ()
    group: int = table_layout.NO_GROUP
    gaps: tuple[Gap, ...] = field(default=(), compare=False)

    @property
    def empty(self) -> bool:
        """Whether the store can express none of the hints."""
        return not any(self.ways)


def fixed_set(store: Store, hints: Mapping[str, str]) -> SettingSet:
    """Return the settings of known values. Raises UsageError for a forbidden attribute."""
    way, gaps = _way(store, hints)
    return SettingSet((way,), gaps=tuple(gaps))


def rule_set(store: Store, hints: Sequence[Hint], nodes: int | None) -> SettingSet:
    """Return a rule's settings for unknown names. Raises UsageError as `fixed_set` does."""
    values = {hint.name: value_of(hint, Scale(nodes=nodes)) for hint in hints}
    grouped = next((hint for hint in hints if hint.formula.fn == "group"), None)
    if grouped is None:
        return fixed_set(store, values)
    kind, _, _ = grouped.value.partition("|")
    names = _list_groups(len(store.places.groups)) if isinstance(store, Placing) else [_GROUP_MARK]
    found = [_way(store, {**values, grouped.name: f"{kind}|{name}"}) for name in names]
    formula = grouped.formula
    return SettingSet(
        tuple(way for way, _ in found),
        (formula.prefix or "group").encode("utf-8", "surrogateescape"),
        formula.captures or (),
        table_layout.BY_LETTERS if formula.letters else table_layout.BY_NAME,
        tuple(found[0][1]),
    )


def _list_groups(places: int) -> list[str]:
    """Return a group name for each place that a checksum can select; one without places."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < max(1, places):
        name = f"g{number}"
        found.setdefault(zlib.crc32(name.encode()) % max(1, places), name)
        number += 1
    return [found[place] for place in sorted(found)]


def at_creation(store: Store, hints: Mapping[str, str]) -> tuple[list[Setting], list[Gap]]:
    """Return the settings that can be made at a file's creation, and the gaps."""
    settings, gaps = store.translate(hints, "file")
    if store.about.tools and not isinstance(store, MooseFs | CephFs):
        gaps = [*gaps, *(Gap(hint=s.hint, level="none", reason=NEEDS_TOOL) for s in settings)]
        settings = []
    return settings, gaps


def _way(store: Store, hints: Mapping[str, str]) -> tuple[tuple[TableSetting, ...], list[Gap]]:
    settings, gaps = at_creation(store, hints)
    for setting in settings:
        store.check_key(setting.key, allow_trusted=False)
    if len(settings) > table_layout.MAX_SETTINGS:
        raise UsageError(
            f"more than {table_layout.MAX_SETTINGS} settings for one file", "Set fewer."
        )
    return tuple(map(_table_setting, settings)), gaps


def _find_tool(name: str) -> str:
    """Return the path of a store's tool on this host, or below /usr/bin if not found."""
    return str(Path(shutil.which(name) or f"/usr/bin/{name}").absolute())


def _table_setting(setting: Setting) -> TableSetting:
    key, value = setting.key.encode(), setting.value
    flags = 0
    if setting.key == MOOSEFS_KEY:
        key, flags = os.fsencode(_find_tool("mfssetsclass")), table_layout.CLASS
    if len(key) > table_layout.MAX_KEY or len(value) > table_layout.MAX_VALUE:
        raise UsageError(f"the setting {setting.key[:80]!r} is too long", "Check the store.")
    if setting.by_name and b"@host" in value:
        before, _, after = value.partition(b"@host")
        return TableSetting(key, before, after, flags | table_layout.HOST)
    before, mark, after = value.partition(_GROUP_MARK.encode())
    return TableSetting(key, before, after, flags | table_layout.GROUP if mark else flags)
