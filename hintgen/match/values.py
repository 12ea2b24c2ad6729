"""From the rule of a path to its hints: the variant for its use, and the values of its scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from tracehint.hintgen.hints.formulas import Scale, value_of
from tracehint.hintgen.hints.model import Hint
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.match.known import Declared, Verdict
from tracehint.hintgen.match.pick import Pick


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

    pick: Pick
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
    paths: Sequence[bytes], picks: Sequence[Pick], run: RunValues
) -> tuple[list[int], list[Verdict]]:
    """(number of the outcome of each path, the outcomes)."""
    rows: dict[tuple[int, str | None, int | None], list[int]] = defaultdict(list)
    for i, key in enumerate(_columns(picks, run)):
        rows[key].append(i)
    codes, made = [0] * len(picks), list[Verdict]()
    for (_, use, count), some in rows.items():
        said = _said(picks[some[0]], use, run)
        if said.constant:
            for i in some:
                codes[i] = len(made)
            made.append(_valued(said, paths[some[0]], count, run, some[0]))
            continue
        code_of: dict[tuple[Any, ...], int] = {}
        for i, own in zip(some, _own(said, some, paths, run.known), strict=False):
            code = code_of.get(own)
            if code is None:
                code = code_of[own] = len(made)
                made.append(_valued(said, paths[i], count, run, i))
            codes[i] = code
    return codes, made


def _columns(picks: Sequence[Pick], run: RunValues) -> Iterator[tuple[int, str | None, int | None]]:
    """What the hints of each path follow from; and from what `_own` has."""
    read, readers = run.known.consumers, run.known.readers
    uses = run.uses if run.uses is not None else repeat(None)
    counts = readers or (repeat(None) if read is None else map(len, read))
    return zip(map(id, picks), uses, counts, strict=False)


def _said(pick: Pick, use: str | None, run: RunValues) -> _Said:
    if pick.entry is None:
        outcome = Verdict(None, (), "", pick.reason, pick.others)
        return _Said(pick, outcome, None, None, (), region=False, per_file={})
    rule = pick.entry.rule
    pattern, hints = rule.pattern, rule.hints
    if use and rule.uses and use not in rule.uses:
        variant = next((v for v in rule.variants if v.use == use), None)
        if variant is None or not variant.hints:
            outcome = Verdict(None, (), "", "use", ((rule.id, "use"), *pick.others))
            return _Said(pick, outcome, None, None, (), region=False, per_file={})
        pattern, hints = variant.pattern, variant.hints
    formulas = {h.formula.get("fn"): h.formula for h in reversed(hints)}
    group = formulas.get("group")
    return _Said(
        pick,
        Verdict(rule, hints, pattern, "fired", pick.others),
        run.readers.get(rule.id),
        None if group is None else "producer" if group.get("by") == "producer" else "consumer",
        tuple(group.get("captures", [])) if group is not None else (),
        "region" in formulas,
        rule.per_file,
    )


def _own(
    said: _Said, rows: Sequence[int], paths: Sequence[bytes], known: Declared
) -> Iterator[tuple[Any, ...]]:
    """What the values of each of the rows follow from."""
    sizes = known.sizes if said.region else None
    return zip(
        _groups(said, rows, paths, known),
        repeat(None) if sizes is None else [sizes[i] for i in rows],
        [paths[i] for i in rows] if said.per_file else repeat(None),
        strict=False,
    )


def _groups(
    said: _Said, rows: Sequence[int], paths: Sequence[bytes], known: Declared
) -> Iterable[object]:
    """The task that names the group of each row, or the texts in its name that do."""
    if said.group is None:
        return repeat(None)
    some, holes = said.pick.some, said.holes
    if (known.producers if said.group == "producer" else known.consumers) is None:
        return [some(paths[i], holes) for i in rows]
    tasks = [_task(said, known, i) for i in rows]
    return [
        some(paths[i], holes) if task is None else task for i, task in zip(rows, tasks, strict=True)
    ]


def _task(said: _Said, known: Declared, i: int) -> str | None:
    column = known.producers if said.group == "producer" else known.consumers
    return column[i][0] if column is not None and len(column[i]) == 1 else None


def _valued(said: _Said, path: bytes, count: int | None, run: RunValues, i: int) -> Verdict:
    """The outcome with the values for one file, and for all with the same key."""
    rule, hints, pattern, reason, others = said.outcome
    if rule is None:
        return said.outcome
    sizes = run.known.sizes
    scale = Scale(
        captures=said.pick.captures(path),
        readers=said.readers if count is None else count,
        nodes=run.nodes,
        size=sizes[i] if sizes is not None else None,
        task=_task(said, run.known, i),
    )
    fixed = said.per_file.get(to_text(path), {}) if said.per_file else {}
    final = tuple(
        Hint(h.name, fixed.get(h.name) or value_of(h, scale), h.when, {}, h.level) for h in hints
    )
    return Verdict(rule, final, pattern, reason, others)
