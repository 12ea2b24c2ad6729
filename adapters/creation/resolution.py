"""What is set on a file at the moment it is made: by its exact name, else by the rules' templates.

The names of the run that the rules were learned from are resolved with all that the run tells
(who writes and reads them); any other name by the name alone. The compiled table
(adapters/creation/compile.py) says the same, and so does `verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.plan import Target, build_plan
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.match.match import Matcher


@dataclass(frozen=True)
class Resolution:
    """`known`: path -> its hints, None where it gets none whatever a template says."""

    hints: HintFile
    known: Mapping[bytes, Target | None]
    nodes: int | None = None

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self.hints)

    def resolve(self, paths: Iterable[bytes]) -> list[Target | None]:
        """The hints of each path (below the data root); None: it gets none."""
        wanted = list(paths)
        others = [path for path in wanted if path not in self.known]
        found = dict(zip(others, self._by_name(others), strict=True))
        return [self.known[path] if path in self.known else found[path] for path in wanted]

    def _by_name(self, paths: list[bytes]) -> list[Target | None]:
        targets: list[Target | None] = []
        for found in self._matcher.match(paths, nodes=self.nodes):
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
    """The resolution of a hint file and of the names that are known before the run."""
    paths = paths or Paths(files=())
    own = [path for path in _named(hints) if path not in set(paths.declared)]
    known = Paths(files=own, declared=paths.declared, known=paths.known, names=paths.names)
    plan = build_plan(hints, known, directories=False, nodes=nodes)
    found: dict[bytes, Target | None] = dict.fromkeys((*known.declared, *known.files))
    found |= {target.path: target for target in plan.targets}
    found |= {target.path: target for target in _planned(hints)}
    return Resolution(hints, found, nodes)


def _planned(hints: HintFile) -> Iterator[Target]:
    """The files of a plan for one run: it decides."""
    plan = hints.plan
    for file in plan.files if plan is not None else ():
        path = to_bytes(file.path)
        if plan is not None and inside(path) and file.hints:
            yield Target(
                path=path, kind="file", hints=file.hints, rule=plan.strategy, pattern="plan"
            )


def _named(hints: HintFile) -> list[bytes]:
    """Paths for which a rule remembers values of their own."""
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
