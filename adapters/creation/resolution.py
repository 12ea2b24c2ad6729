"""What is set on a file at the moment it is made: by its exact name, else by the rules' templates.

The names of the run that the rules were learned from are resolved with all that the run tells
(who writes and reads them); any other name by the name alone. The compiled table
(adapters/creation/compile.py) says the same, and so does `verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.plan import Target, build_plan
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.match.match import Declared, Matcher


@dataclass(frozen=True)
class Resolution:
    """`known`: path -> its hints, None where it gets none whatever a template says.

    `bound`: path -> the type of the task that has to make it, where its name does not tell how it
    will be used; made by another one it is a file that nobody knows.
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
        """The hints of each path (below the data root); None: it gets none.

        `makers`: the type of the task that makes each, None where it is not known; without the
        list nobody asks, and rules that do say nothing.
        """
        wanted = list(zip(paths, makers, strict=True)) if makers else [(p, None) for p in paths]
        asked = bool(makers)
        others = [pair for pair in wanted if not self._is_known(*pair, asked)]
        found = dict(zip(others, self._by_name(others, asked), strict=True))
        return [found[pair] if pair in found else self.known[pair[0]] for pair in wanted]

    def _is_known(self, path: bytes, maker: str | None, asked: bool) -> bool:
        """Whether the name itself decides."""
        return path in self.known and (not asked or self.bound.get(path, maker) == maker)

    def _by_name(self, pairs: list[tuple[bytes, str | None]], asked: bool) -> list[Target | None]:
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
    """The resolution of a hint file and of the names that are known before the run."""
    paths = paths or Paths(files=())
    own = [path for path in _named(hints) if path not in set(paths.declared)]
    known = Paths(files=own, declared=paths.declared, known=paths.known, names=paths.names)
    plan = build_plan(hints, known, directories=False, nodes=nodes)
    found: dict[bytes, Target | None] = dict.fromkeys((*known.declared, *known.files))
    found |= {target.path: target for target in plan.targets}
    bound = _bound(hints, known, {target.path: target.rule for target in plan.targets})
    planned = {target.path: target for target in _planned(hints)}
    return Resolution(
        hints,
        found | planned,
        nodes,
        {path: kind for path, kind in bound.items() if path not in planned},
    )


def _bound(hints: HintFile, known: Paths, fired: Mapping[bytes, str]) -> dict[bytes, str]:
    """Files of the recorded run that got their hints by more than their names, and the types of
    the tasks that made them, where such a task is surely known when it makes its files."""
    sure = {maker.type for maker in hints.makers if maker.sure}
    needy = {rule.id for rule in hints.rules if rule.conditions.get("needs")}
    kinds = known.known.producer_types if known.known is not None else None
    if not sure or kinds is None:
        return {}
    pairs = zip(known.declared, kinds, strict=True)
    return {path: kind for path, kind in pairs if kind in sure and fired.get(path) in needy}


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
