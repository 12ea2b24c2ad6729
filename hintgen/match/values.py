"""From the rule of a path to its hints: the variant for its use, and the values of its scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.hintgen.hints.formulas import Scale, value_of
from tracehint.hintgen.hints.model import Hint
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.match.coded import coded, codes_of
from tracehint.hintgen.match.known import Declared, Verdict
from tracehint.hintgen.match.pick import Pick

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints


@dataclass(frozen=True)
class RunValues:
    """What is known of the run beside the paths. `readers`: rule -> readers, from names."""

    known: Declared
    nodes: int | None
    uses: Sequence[str] | None
    readers: Mapping[str, float]


@dataclass(frozen=True)
class _Said:
    """The hints of a rule for files of one use; their values may follow from each file."""

    outcome: Verdict
    readers: float | None
    group: str | None  # "producer" or "consumer": a value follows from that task, or from the name
    holes: tuple[int, ...]  # placeholders whose texts name the group, where no task does
    region: bool  # a value follows from the file's size
    per_file: Mapping[str, Mapping[str, str]]

    @property
    def constant(self) -> bool:
        """Whether the readers are all that the values follow from."""
        return self.group is None and not self.region and not self.per_file


def outcomes(
    paths: Sequence[bytes], codes: Ints, picks: Sequence[Pick], run: RunValues
) -> tuple[Ints, list[Verdict]]:
    """(number of the outcome of each path, the outcomes); `codes`: which of the picks each has."""
    import numpy as np

    from tracehint.analyzer.arrays import alike, order_by, starts_of

    files = _AskedFiles(paths, codes, picks, run)
    first, group = alike(*files.columns())
    order = order_by(group)
    of_group = np.split(order, starts_of(group[order])[1:])
    numbers, made = np.zeros(len(codes), np.int64), list[Verdict]()
    for i, rows in zip(first.tolist(), of_group, strict=False):
        said = _said(files.pick(i), None if run.uses is None else run.uses[i], run)
        one_of, own = (rows[:1] * 0, rows * 0) if said.constant else alike(*files.own(said, rows))
        numbers[rows] = len(made) + own
        made += [_valued(said, files, row) for row in rows[one_of].tolist()]
    return numbers, made


class _AskedFiles:
    """Files and their picks, as columns from which their hints follow."""

    def __init__(
        self, paths: Sequence[bytes], codes: Ints, picks: Sequence[Pick], run: RunValues
    ) -> None:
        self.paths, self.codes, self.picks, self.run = paths, codes, picks, run
        self._only: dict[str, Ints] = {}

    def pick(self, i: int) -> Pick:
        """The pick of a file."""
        return self.picks[int(self.codes[i])]

    def count(self, i: int) -> int | None:
        """Consumers of a file, where they are known."""
        known = self.run.known
        if known.readers is not None:
            return int(known.readers[i])
        return None if known.consumers is None else len(known.consumers[i])

    def columns(self) -> Iterator[Ints]:
        """What is the same for files that have the same hints, beside what `own` has."""
        import numpy as np

        kinds = coded((id(pick.entry), pick.reason, pick.others) for pick in self.picks)
        yield kinds.codes[self.codes]
        if self.run.uses is not None:
            yield codes_of(self.run.uses)
        known = self.run.known
        if known.readers is not None or known.consumers is not None:
            counts = known.readers if known.readers is not None else map(len, known.consumers or ())
            yield np.array(counts if isinstance(counts, np.ndarray) else list(counts), np.int64)

    def own(self, said: _Said, rows: Ints) -> Iterator[Ints]:
        """What the values of each of the rows follow from."""
        yield self._groups(said, rows)
        if said.region and self.run.known.sizes is not None:
            sizes = self.run.known.sizes
            yield coded(sizes[i] for i in rows.tolist()).codes
        if said.per_file:
            yield coded(self.paths[i] for i in rows.tolist()).codes

    def _groups(self, said: _Said, rows: Ints) -> Ints:
        """The task that names the group of each row, or the texts in its name that do."""
        import numpy as np

        if said.group is None:
            return rows * 0
        tasks = self._tasks(said.group)[rows]
        named = np.flatnonzero(tasks < 0)
        texts = coded(self.pick(i).some(self.paths[i], said.holes) for i in rows[named].tolist())
        tasks[named] = tasks.max() + 1 + texts.codes
        return tasks

    def _tasks(self, side: str) -> Ints:
        """A number for the one task on that side of each file; -1: there is none, or several."""
        import numpy as np

        known = self.run.known
        if side not in self._only:
            tasks, only = (
                (known.producers, known.only_producer)
                if side == "producer"
                else (known.consumers, known.only_consumer)
            )
            if only is None and tasks is not None:
                names = coded(some[0] if len(some) == 1 else None for some in tasks)
                none = np.array([name is None for name in names.values], bool)
                only = np.where(none[names.codes], -1, names.codes)
            self._only[side] = np.full(len(self.paths), -1) if only is None else only
        return self._only[side]

    def task(self, said: _Said, i: int) -> str | None:
        """The name of that task."""
        known = self.run.known
        tasks = known.producers if said.group == "producer" else known.consumers
        return tasks[i][0] if tasks is not None and len(tasks[i]) == 1 else None


def _said(pick: Pick, use: str | None, run: RunValues) -> _Said:
    if pick.entry is None:
        return _silent(Verdict(None, (), "", pick.reason, pick.others))
    rule = pick.entry.rule
    pattern, hints = rule.pattern, rule.hints
    if use and rule.uses and use not in rule.uses:
        variant = next((v for v in rule.variants if v.use == use), None)
        if variant is None or not variant.hints:
            return _silent(Verdict(None, (), "", "use", ((rule.id, "use"), *pick.others)))
        pattern, hints = variant.pattern, variant.hints
    formulas = {h.formula.get("fn"): h.formula for h in reversed(hints)}
    group = formulas.get("group")
    return _Said(
        Verdict(rule, hints, pattern, "fired", pick.others),
        run.readers.get(rule.id),
        None if group is None else "producer" if group.get("by") == "producer" else "consumer",
        tuple(group.get("captures", [])) if group is not None else (),
        "region" in formulas,
        rule.per_file,
    )


def _silent(outcome: Verdict) -> _Said:
    return _Said(outcome, None, None, (), region=False, per_file={})


def _valued(said: _Said, files: _AskedFiles, i: int) -> Verdict:
    """The outcome with the values for one file, and for all of which they follow from the same."""
    rule, hints, pattern, reason, others = said.outcome
    if rule is None:
        return said.outcome
    path, count, sizes = files.paths[i], files.count(i), files.run.known.sizes
    scale = Scale(
        captures=files.pick(i).captures(path),
        readers=said.readers if count is None else count,
        nodes=files.run.nodes,
        size=sizes[i] if sizes is not None else None,
        task=files.task(said, i),
    )
    fixed = said.per_file.get(to_text(path), {}) if said.per_file else {}
    final = tuple(
        Hint(h.name, fixed.get(h.name) or value_of(h, scale), h.when, {}, h.level) for h in hints
    )
    return Verdict(rule, final, pattern, reason, others)
