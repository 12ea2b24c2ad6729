"""The hints of each file and directory: rules of a hint file matched to concrete paths.

Rules describe files that may not exist yet. Concrete paths come from the directory itself, the
workflow's graph, and the paths stored in the rules (literal templates, examples, per-file values).
If the run creates files in a directory and all known files there agree on a hint, the directory
gets it as a default, which stores with inheritance apply to files created later. If the hint file
has a plan for this run, the plan's hints of its files override the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tracehint.adapters.paths import Paths, inside, planned_files
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import UNCONDITIONAL, HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.hints.vocabulary import common_hints
from tracehint.hintgen.match.known import Verdict
from tracehint.hintgen.match.match import Matcher
from tracehint.schemas.wording import plural

Kind = Literal["file", "directory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One file or directory and its hints. `path` is below the root; b"" is the root itself."""

    path: bytes
    kind: Kind
    hints: Mapping[str, str]
    rule: str  # id of the rule; several joined by a comma for a directory
    pattern: str
    create: bool = False  # create it if it does not exist


@dataclass
class TagPlan:
    """Targets, directories first; `conflicts` are directories whose files disagree."""

    targets: list[Target] = field(default_factory=list)
    conflicts: list[tuple[bytes, str]] = field(default_factory=list)  # (directory, hint name)
    costly: int = 0  # names whose matching exceeded the limit match-work
    untyped: int = 0  # names without a match because the producing task is unknown

    def remarks(self) -> list[str]:
        """Return messages for the user about the matching, one per line."""
        lines = []
        if self.costly:
            lines.append(
                f"{plural(self.costly, 'name')} without a hint: too costly to match with all rules "
                "(limit match-work, docs/reference/limits.md)"
            )
        if self.untyped:
            lines.append(
                f"{plural(self.untyped, 'file')} without a hint: the name does not show the "
                "producing task (`tracehint run` records it; or give --workflow or --like)"
            )
        return lines


def build_plan(
    hints: HintFile,
    paths: Paths,
    *,
    create: bool = False,
    directories: bool = True,
    nodes: int | None = None,
    matcher: Matcher | None = None,
) -> TagPlan:
    """Match the paths to the rules and add directory defaults.

    `create` marks files that do not exist yet and that a rule's task will produce; inputs of the
    run are never created. `matcher`: an existing matcher of these rules.
    """
    plan = TagPlan()
    matched: dict[bytes, Target | None] = dict.fromkeys((*paths.declared, *paths.files))
    matcher = matcher or Matcher(hints)
    asked = (
        (paths.declared, paths.add_sizes(paths.declared, paths.known), ()),
        (paths.files, paths.add_sizes(paths.files, None), paths.names),
    )
    for files, known, names in asked if hints.rules else ():
        numbers, found = matcher.outcomes(files, known, nodes, names)
        codes = numbers.tolist()
        plan.costly += sum(found[code].reason == "costly" for code in codes)
        plan.untyped += sum(found[code].reason == "maker" for code in codes)
        kinds = [_Outcome.of(outcome, create) for outcome in found]
        for path, code in zip(files, codes, strict=True):
            matched[path] = kinds[code].target(path, paths.existing)
    _apply_plan(matched, planned_files(hints), paths)
    if directories:
        plan.targets += _override(_directories(hints, matched, plan, create), hints, create)
    plan.targets += [target for target in matched.values() if target is not None]
    return plan


def _apply_plan(
    matched: dict[bytes, Target | None], planned: Mapping[bytes, Mapping[str, str]], paths: Paths
) -> None:
    """Apply the plan: its files get its hints, the other declared files of its graph get none."""
    if paths.planned:
        matched.update((path, None) for path in paths.declared if path not in planned)
    for path in planned.keys() & matched.keys():
        before = matched[path]
        matched[path] = Target(
            path=path,
            kind="file",
            hints=planned[path],
            rule="plan",
            pattern=before.pattern if before else "plan",
            create=before is not None and before.create,
        )


@dataclass(frozen=True)
class _Outcome:
    """Properties shared by all files with the same match outcome."""

    hints: Mapping[str, str]
    rule: str
    pattern: str
    create: bool

    @classmethod
    def of(cls, found: Verdict, create: bool) -> _Outcome:
        """Build from a match outcome; without hints if no rule matched."""
        values = {hint.name: hint.value for hint in found.hints}
        if found.rule is None:
            return cls({}, "", "", create=False)
        made = create and _made_in_run(found.rule)
        return cls(values, found.rule.id, found.pattern, create=made)

    def target(self, path: bytes, existing: frozenset[bytes]) -> Target | None:
        """Return the target for one file; None if it gets no hint."""
        if not self.hints:
            return None
        return Target(
            path=path,
            kind="file",
            hints=self.hints,
            rule=self.rule,
            pattern=self.pattern,
            create=self.create and path not in existing,
        )


def _made_in_run(rule: Rule) -> bool:
    return rule.producer is not None or any(rule.producers)  # "" means inputs of the run


def _directories(
    hints: HintFile, matched: Mapping[bytes, Target | None], plan: TagPlan, create: bool
) -> list[Target]:
    """Return defaults of directories where all known files, hinted or not, have the same hint and
    the run creates a file; the launch directory requires several, because a default applies to
    every new file and engines and users create files there that no rule names."""
    placement = {h.name for rule in hints.rules for h in rule.hints if h.level == "placement"}
    members: dict[bytes, list[Mapping[str, str]]] = {}
    rules: dict[bytes, dict[str, str]] = {}
    created: Counter[bytes] = Counter()
    counts = {rule.id: _created_by(rule) for rule in hints.rules}
    for path, target in matched.items():
        folder = path.rpartition(b"/")[0]
        members.setdefault(folder, []).append(target.hints if target else {})
        if target:
            rules.setdefault(folder, {})[target.rule] = target.pattern
            created[folder] += counts.get(target.rule, 1)
    _add_unmatched_rules(hints, matched, members, rules, created)
    targets = []
    for folder in sorted(rules):
        if created[folder] < (1 if folder else _SEVERAL):
            continue
        common = {k: v for k, v in common_hints(members[folder]).items() if k in placement}
        names = {name for values in members[folder] for name in values if name in placement}
        plan.conflicts += [(folder, name) for name in sorted(names - set(common))]
        if common:
            targets.append(
                Target(
                    path=folder,
                    kind="directory",
                    hints=common,
                    rule=",".join(rules[folder]),
                    pattern=",".join(dict.fromkeys(rules[folder].values())),
                    create=create,
                )
            )
    return targets


_SEVERAL = 2  # created files that a default of the launch directory requires


def _created_by(rule: Rule) -> int:
    """Return how many created files one known file of the rule represents: none for an input,
    several if the template has a placeholder."""
    if not _made_in_run(rule):
        return 0
    return 1 if parse(rule.template).literal else _SEVERAL


def _override(targets: list[Target], hints: HintFile, create: bool) -> list[Target]:
    """Return the defaults, overridden by the hint file's own hints of directories."""
    found = {target.path: target for target in targets}
    for one in hints.directories:
        path = to_bytes(one.path)
        if not inside(path):
            continue
        blank = Target(path=path, kind="directory", hints={}, rule="", pattern="", create=create)
        before = found.get(path, blank)
        found[path] = replace(
            before,
            hints={**before.hints, **one.hints},
            rule=",".join(filter(None, (before.rule, "directories"))),
            pattern=before.pattern or "directories",
        )
    return sorted(found.values(), key=lambda target: target.path)


def _add_unmatched_rules(
    hints: HintFile,
    matched: Mapping[bytes, Target | None],
    members: dict[bytes, list[Mapping[str, str]]],
    rules: dict[bytes, dict[str, str]],
    created: Counter[bytes],
) -> None:
    """Count rules without a known path for their own directory; a refused template is a veto."""
    seen = {target.rule for target in matched.values() if target}
    for rule in hints.rules:
        template = parse(rule.template)
        folder = template.directory
        if (
            rule.id in seen
            or not _one_directory(template.text, folder)
            or rule.conditions != UNCONDITIONAL
        ):
            continue
        # A value computed from the scale differs per file, so it cannot be a default.
        values = {h.name: h.value for h in rule.hints if not h.formula.fn}
        members.setdefault(folder, []).append(values)
        created[folder] += _created_by(rule)
        if any(not h.formula.fn for h in rule.hints):
            rules.setdefault(folder, {})[rule.id] = rule.pattern
    for refusal in hints.refused:
        try:
            template = parse(refusal.template)
        except InputError:
            continue
        if template.directory in members:
            members[template.directory].append({})


def _one_directory(text: str, folder: bytes) -> bool:
    """Return whether every file of the template is directly in `folder`."""
    return text.count("/") == (folder.count(b"/") + 1 if folder else 0) and "{dirs}" not in text
