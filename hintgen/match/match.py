"""Select the rule that applies to each path, and compute its hint values.

    matches = match(hint_file, [b"proj/p_tile_7.fits", ...])

The input is limited to facts available before a run: the path and, if the
engine's graph is available, the declared producing and consuming tasks with
their types. The most specific matching rule wins; two equally specific rules
that disagree are a conflict without a hint. A name that needs more work than
the limit match-work gets no hint and the reason "costly".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.hintgen.hints.mapping import Scale, value_of
from tracehint.hintgen.hints.model import CONSTANT, Hint, HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.template import Places, Subject, TooCostlyError, texts_at
from tracehint.hintgen.hints.uses import pair_counts, uses_of
from tracehint.hintgen.match.known import Declared, Match, Verdict, codes_of, encode_values
from tracehint.hintgen.match.ruleindex import (
    MAX_CACHED,
    AskedNames,
    Entry,
    RuleIndex,
    Skeletons,
    readers_by_rule,
)
from tracehint.limits import limit

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints


# The rule of each path, computed once for all paths with the same known facts.
#
# Names that differ only in digits are equal unless a rule distinguishes them
# (hintgen/match/ruleindex.py); sizes are equal unless a rule's bound is between them.

Alike = tuple[object, ...]  # the facts that a pick depends on, in addition to the rules


@dataclass(frozen=True)
class Pick:
    """The rule for a path and the extents of its placeholders' texts, or the reason for none."""

    entry: Entry | None
    reason: str
    others: tuple[tuple[str, str], ...] = ()  # (rule id, why not)
    where: Places = ()
    shared: bool = True  # valid for all names of the skeleton with the same declared facts

    def captures(self, path: bytes) -> tuple[bytes, ...]:
        """Return the texts of the placeholders in a path with this pick."""
        return texts_at(self.where, path)

    def some(self, path: bytes, holes: Sequence[int]) -> tuple[bytes, ...]:
        """Return the texts of some placeholders, without missing ones."""
        return tuple([path[self.where[hole]] for hole in holes if hole < len(self.where)])


@dataclass(frozen=True)
class AskedPaths:
    """Paths and the facts known about them. `alike`: files between the same tasks, if known."""

    paths: AskedNames
    known: Declared
    alike: Sequence[int] | Ints | None
    names: Container[bytes]


class Picker:
    """Selects the rules of many paths, with a cache of picks."""

    def __init__(self, index: RuleIndex, rules: Sequence[Rule]) -> None:
        self.index = index
        self._skeletons = Skeletons(index.templates)
        self._bounds = sorted({r.conditions.min_size_bytes for r in rules})
        self.remembered: dict[Alike, Pick] = {}

    def picks(self, asked: AskedPaths) -> tuple[Ints, list[Pick]]:
        """Return the index of each path's pick, and the picks."""
        import numpy as np

        from tracehint.analyzer.arrays import group_equal_rows

        most = limit("match-work")
        short = asked.paths.skeletons
        apart = {
            name: code
            for code, name in enumerate(short.values)
            if not self._skeletons.alike(name, most)
        }
        first, code = group_equal_rows(*self._columns(asked, apart))
        found = [self._find_pick(asked, i, apart, most) for i in first.tolist()]
        picks = [pick for pick, _ in found]
        alone = [k for k, (_, shared) in enumerate(found) if not shared]
        if alone:
            rows = np.flatnonzero(np.isin(code, alone))
            rows = rows[first[code[rows]] != rows]  # the first row of each has its pick
            code[rows] = np.arange(len(rows)) + len(picks)
            picks += [self._find_pick(asked, i, apart, most)[0] for i in rows.tolist()]
        return code, picks

    def _columns(self, asked: AskedPaths, apart: Mapping[bytes, int]) -> Iterator[Ints]:
        """Yield the components of `_key` for all paths, as numbers."""
        import numpy as np

        known, short = asked.known, asked.paths.skeletons
        names = short.codes
        if apart:
            rows = np.flatnonzero(np.isin(names, list(apart.values())))
            names = names.copy()
            names[rows] = (
                len(short.values) + encode_values(asked.paths[i] for i in rows.tolist()).codes
            )
        yield names
        if asked.alike is not None:
            yield np.asarray(asked.alike, np.int64)
        if known.producer_types is not None:
            yield codes_of(known.producer_types)
        if known.consumer_types is not None:
            yield codes_of(known.consumer_types, tuple)
        if known.sizes is not None:
            yield encode_values(map(self._size_class, known.sizes)).codes
        if known.makers is not None:
            yield codes_of(known.makers)

    def _key(self, asked: AskedPaths, i: int, apart: Mapping[bytes, int], most: int) -> Alike:
        """Return the facts that determine the pick of a path."""
        known, short = asked.known, asked.paths.skeletons[i]
        return (
            asked.paths[i] if short in apart else short,
            most,
            known.producers is None or known.consumers is None,
            0 if asked.alike is None else int(asked.alike[i]),
            known.producer_types is not None and known.producer_types[i],
            known.consumer_types is not None and tuple(known.consumer_types[i]),
            None if known.sizes is None else self._size_class(known.sizes[i]),
            known.makers is not None and known.makers[i],
        )

    def _size_class(self, size: int | None) -> int | None:
        """Return the number of size bounds of rules that a size reaches."""
        return None if size is None else bisect_right(self._bounds, size)

    def _find_pick(
        self, asked: AskedPaths, i: int, apart: Mapping[bytes, int], most: int
    ) -> tuple[Pick, bool]:
        """Return the pick of a path, and whether it is valid for all paths with the same key."""
        key = self._key(asked, i, apart, most)
        before = self.remembered.get(key)
        if before is not None:
            return before, True
        subject, known = Subject(asked.paths[i], most), self.index.is_cached(asked.paths[i])
        try:
            pick = self._best(subject, asked, i)
        except TooCostlyError:
            if known:  # its cached work counts, but the intermediate results are lost
                self.index.forget(asked.paths[i])
                return self._find_pick(asked, i, apart, most)
            return Pick(None, "costly", shared=False), False
        # near the limit, the work may depend on the digits
        if not pick.shared or subject.work > most // 2:
            return pick, False
        if len(self.remembered) >= MAX_CACHED:
            self.remembered.clear()
        self.remembered[key] = pick
        return pick, True

    def _best(self, subject: Subject, asked: AskedPaths, i: int) -> Pick:
        """Return the most specific matching rule. Rules for any name of some types do not apply if
        two tasks share more files than observed: a run may add a marker file to each data file, and
        nothing distinguishes the two."""
        known, alike = asked.known, int(asked.alike[i]) if asked.alike is not None else 0
        reason = "no_rule"
        others: list[tuple[str, str]] = []
        winner: tuple[Entry, Places] | None = None
        candidates = self.index.candidates(subject, known, i)
        shared = not any(entry.names_decide for entry, _ in candidates)
        for entry, where in candidates:
            why = self.index.objection(entry, where, subject, known, i, asked.names)
            if not why and 0 < entry.rule.conditions.per_pair < alike:
                why = "extra"
            if why:
                # A fallback rule for any name of some task types says nothing about this name.
                news = why == "extra" or entry.rule.evidence.get("level") != 2
                if winner is None and reason == "no_rule" and news:
                    reason = why
                others.append((entry.rule.id, why))
            elif winner is None:
                winner = entry, where
            elif self._disagree(winner[0], entry, known, i):
                tie = [(winner[0].rule.id, "tie"), (entry.rule.id, "tie")]
                return Pick(None, "conflict", (*others, *tie), shared=shared)
            else:
                others.append((entry.rule.id, "less_specific"))
        if winner is None:
            return Pick(None, reason, tuple(others), shared=shared)
        return Pick(winner[0], "fired", tuple(others), winner[1], shared)

    def _disagree(self, winner: Entry, entry: Entry, known: Declared, i: int) -> bool:
        equal = self.index.rank(entry, known, i) == self.index.rank(winner, known, i)
        return equal and entry.rule.hints != winner.rule.hints


# Hints of a path from its rule: the variant for its use, and the values for its scale.


@dataclass(frozen=True)
class RunValues:
    """Facts known about the run. `readers`: rule -> readers per file, estimated from names."""

    known: Declared
    nodes: int | None
    uses: Sequence[str] | None
    readers: Mapping[str, float]


@dataclass(frozen=True)
class _UseHints:
    """The hints of a rule for files of one use; their values may depend on each file."""

    outcome: Verdict
    readers: float | None
    group: str | None  # "producer" or "consumer": a value depends on that task, or on the name
    holes: tuple[int, ...]  # placeholders whose texts name the group if no task does
    region: bool  # a value depends on the file's size
    per_file: Mapping[str, Mapping[str, str]]

    @property
    def constant(self) -> bool:
        """Whether the values depend only on the number of readers."""
        return self.group is None and not self.region and not self.per_file


def outcomes(
    paths: Sequence[bytes], codes: Ints, picks: Sequence[Pick], run: RunValues
) -> tuple[Ints, list[Verdict]]:
    """Return the index of each path's verdict, and the verdicts; `codes`: index of each pick."""
    import numpy as np

    from tracehint.analyzer.arrays import group_equal_rows, order_by, starts_of

    files = _AskedFiles(paths, codes, picks, run)
    first, group = group_equal_rows(*files.columns())
    order = order_by(group)
    of_group = np.split(order, starts_of(group[order])[1:])
    numbers, made = np.zeros(len(codes), np.int64), list[Verdict]()
    for i, rows in zip(first.tolist(), of_group, strict=False):
        of_use = _resolve_pick(files.pick(i), None if run.uses is None else run.uses[i], run)
        one_of, own = (
            (rows[:1] * 0, rows * 0)
            if of_use.constant
            else group_equal_rows(*files.list_causes(of_use, rows))
        )
        numbers[rows] = len(made) + own
        made += [_resolve_values(of_use, files, row) for row in rows[one_of].tolist()]
    return numbers, made


class _AskedFiles:
    """Files and their picks, as columns that determine their hints."""

    def __init__(
        self, paths: Sequence[bytes], codes: Ints, picks: Sequence[Pick], run: RunValues
    ) -> None:
        self.paths, self.codes, self.picks, self.run = paths, codes, picks, run
        self._only: dict[str, Ints] = {}

    def pick(self, i: int) -> Pick:
        """Return the pick of a file."""
        return self.picks[int(self.codes[i])]

    def count(self, i: int) -> int | None:
        """Return the number of consumers of a file; None: unknown."""
        known = self.run.known
        if known.readers is not None:
            return int(known.readers[i])
        return None if known.consumers is None else len(known.consumers[i])

    def columns(self) -> Iterator[Ints]:
        """Yield columns that are equal for files with the same hints; see `list_causes` too."""
        import numpy as np

        kinds = encode_values((id(pick.entry), pick.reason, pick.others) for pick in self.picks)
        yield kinds.codes[self.codes]
        if self.run.uses is not None:
            yield codes_of(self.run.uses)
        known = self.run.known
        if known.readers is not None or known.consumers is not None:
            counts = known.readers if known.readers is not None else map(len, known.consumers or ())
            yield np.array(counts if isinstance(counts, np.ndarray) else list(counts), np.int64)

    def list_causes(self, of_use: _UseHints, rows: Ints) -> Iterator[Ints]:
        """Yield columns that determine the hint values of the rows."""
        yield self._groups(of_use, rows)
        if of_use.region and self.run.known.sizes is not None:
            sizes = self.run.known.sizes
            yield encode_values(sizes[i] for i in rows.tolist()).codes
        if of_use.per_file:
            yield encode_values(self.paths[i] for i in rows.tolist()).codes

    def _groups(self, of_use: _UseHints, rows: Ints) -> Ints:
        """Return a number for the task, or else the texts, that name the group of each row."""
        import numpy as np

        if of_use.group is None:
            return rows * 0
        tasks = self._tasks(of_use.group)[rows]
        named = np.flatnonzero(tasks < 0)
        texts = encode_values(
            self.pick(i).some(self.paths[i], of_use.holes) for i in rows[named].tolist()
        )
        tasks[named] = tasks.max() + 1 + texts.codes
        return tasks

    def _tasks(self, side: str) -> Ints:
        """Return a number for the only task on that side of each file; -1: none or several."""
        import numpy as np

        known = self.run.known
        if side not in self._only:
            tasks, only = (
                (known.producers, known.only_producer)
                if side == "producer"
                else (known.consumers, known.only_consumer)
            )
            if only is None and tasks is not None:
                names = encode_values(some[0] if len(some) == 1 else None for some in tasks)
                none = np.array([name is None for name in names.values], bool)
                only = np.where(none[names.codes], -1, names.codes)
            self._only[side] = np.full(len(self.paths), -1) if only is None else only
        return self._only[side]

    def task(self, of_use: _UseHints, i: int) -> str | None:
        """Return the id of the only task that names the group; None: none or several."""
        known = self.run.known
        tasks = known.producers if of_use.group == "producer" else known.consumers
        return tasks[i][0] if tasks is not None and len(tasks[i]) == 1 else None


def _resolve_pick(pick: Pick, use: str | None, run: RunValues) -> _UseHints:
    if pick.entry is None:
        return _silent(Verdict(None, (), "", pick.reason, pick.others))
    rule = pick.entry.rule
    pattern, hints = rule.pattern, rule.hints
    if use and rule.uses and use not in rule.uses:
        variant = next((v for v in rule.variants if v.use == use), None)
        if variant is None or not variant.hints:
            return _silent(Verdict(None, (), "", "use", ((rule.id, "use"), *pick.others)))
        pattern, hints = variant.pattern, variant.hints
    formulas = {h.formula.fn: h.formula for h in reversed(hints)}
    group = formulas.get("group")
    return _UseHints(
        Verdict(rule, hints, pattern, "fired", pick.others),
        run.readers.get(rule.id),
        None if group is None else group.by or "consumer",
        (group.captures or ()) if group is not None else (),
        "region" in formulas,
        rule.per_file,
    )


def _silent(outcome: Verdict) -> _UseHints:
    return _UseHints(outcome, None, None, (), region=False, per_file={})


def _resolve_values(of_use: _UseHints, files: _AskedFiles, i: int) -> Verdict:
    """Return the verdict with the hint values of one file (and all with the same causes)."""
    rule, hints, pattern, reason, others = of_use.outcome
    if rule is None:
        return of_use.outcome
    path, count, sizes = files.paths[i], files.count(i), files.run.known.sizes
    scale = Scale(
        captures=files.pick(i).captures(path),
        readers=of_use.readers if count is None else count,
        nodes=files.run.nodes,
        size=sizes[i] if sizes is not None else None,
        task=files.task(of_use, i),
    )
    fixed = of_use.per_file.get(to_text(path), {}) if of_use.per_file else {}
    final = tuple(
        Hint(h.name, fixed.get(h.name) or value_of(h, scale), h.when, CONSTANT, h.level)
        for h in hints
    )
    return Verdict(rule, final, pattern, reason, others)


__all__ = ["Declared", "Match", "Matcher", "match"]


class Matcher:
    """Compiled rules of one hint file; reusable for many batches."""

    def __init__(self, hints: HintFile) -> None:
        self.picker = Picker(RuleIndex(hints.rules), hints.rules)
        self._nodes = hints.nodes

    def match(
        self,
        paths: Sequence[bytes],
        known: Declared | None = None,
        nodes: int | None = None,
        names: Collection[bytes] = (),
        *,
        counted: bool = True,
    ) -> list[Match]:
        """Return one Match per path, in order. `names`: all files of the run, if known.

        `nodes` of the next run; None: the number that the rules were learned for, if known.
        `counted`: estimate readers from `names`, which each call scans completely.
        """
        codes, found = self.outcomes(paths, known, nodes, names, counted=counted)
        return [Match(path, *found[code]) for path, code in zip(paths, codes.tolist(), strict=True)]

    def outcomes(
        self,
        paths: Sequence[bytes],
        known: Declared | None = None,
        nodes: int | None = None,
        names: Collection[bytes] = (),
        *,
        counted: bool = True,
    ) -> tuple[Ints, list[Verdict]]:
        """Match like `match`, but return the index of each path's verdict and the few verdicts."""
        known = known or Declared()
        uses, alike = known.uses, known.alike
        if known.producers is not None and known.consumers is not None:
            uses = uses_of(known.producers, known.consumers) if uses is None else uses
            alike = pair_counts(known.producers, known.consumers) if alike is None else alike
        asked = paths if isinstance(paths, AskedNames) else AskedNames(paths)
        codes, picks = self.picker.picks(AskedPaths(asked, known, alike, names))
        readers: Mapping[str, float] = {}
        if counted and names and known.consumers is None:
            readers = readers_by_rule(_count_fired_rules(codes, picks), names)
        return outcomes(asked, codes, picks, RunValues(known, nodes or self._nodes, uses, readers))


def _count_fired_rules(codes: Ints, picks: Sequence[Pick]) -> Iterator[tuple[Rule, int]]:
    """Yield the rule of each pick with its number of files."""
    import numpy as np

    count = np.bincount(codes, minlength=len(picks)).tolist()
    for pick, files in zip(picks, count, strict=True):
        if pick.entry is not None:
            yield pick.entry.rule, files


def match(
    hints: HintFile,
    paths: Sequence[bytes],
    producer_types: Sequence[str | None] | None = None,
    consumer_types: Sequence[Sequence[str]] | None = None,
    *,
    known: Declared | None = None,
    nodes: int | None = None,
) -> list[Match]:
    """Match paths (below the data root) against a hint file; see `Matcher`."""
    if known is None:
        known = Declared(producer_types, consumer_types)
    return Matcher(hints).match(paths, known, nodes)
