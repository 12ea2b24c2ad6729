"""Local search: small changes of drafts, accepted by simulation, within a budget of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.analyzer.predict.model import NODE, Floats
from tracehint.hintgen.plan.model import FREE, Draft
from tracehint.hintgen.plan.neighbours import (
    MAX_ENTRIES,
    Move,
    bind_where_run,
    moves_of_kinds,
    moves_of_tasks,
)
from tracehint.hintgen.plan.objective import Bench, Objective
from tracehint.schemas.wording import plural

TRIALS = range(101, 104)  # numbers of the runs that try moves; the estimates use others
MIN_SAVING, MIN_KIND_SAVING = 0.0003, 0.003  # minimum mean saving, as a share of the objective
BATCH = 24  # moves tried in one batch, before the improving ones are combined
MOVES_PER_KICK, KICK_CANDIDATES = 6, 24  # moves of a perturbation, drawn from the cheapest moves
MAX_KICKS = 12  # perturbations in a row without improvement that end the search
FINALISTS = 3  # drafts that get runs beyond the first third
MIN_RUNS = 150  # minimum number of runs for a draft


@dataclass(frozen=True)
class ChangedDraft:
    """A draft with the moves applied so far; `value`: its objective value in each trial run.

    `kinds_settled`: no move of a whole task type or kind of files improves it any more.
    """

    draft: Draft
    value: Floats
    done: tuple[str, ...] = ()
    shifted: frozenset[int] = frozenset()
    kinds_settled: bool = False

    @property
    def mean(self) -> float:
        """Mean objective value over the trial runs."""
        return float(np.mean(self.value))

    def apply(self, moves: Iterable[Move]) -> ChangedDraft:
        """Return a copy with these moves applied; the objective value is not updated."""
        found = self
        for move in moves:
            found = replace(
                found,
                draft=move.change(found.draft),
                done=found.done + ((move.text,) if move.text else ()),
                shifted=found.shifted | frozenset(move.tasks),
            )
        return found

    @property
    def changes(self) -> str:
        """Text of the applied moves; "": none."""
        count = len(self.shifted)
        tasks = [f"{plural(count, 'task')} in other parts"] if count else []
        return ", ".join([*self.done, *tasks])


@dataclass
class LocalSearch:
    """Improves drafts. `cut`: the part to bind each task to; `until`: value of `bench.spent` at
    which the search ends."""

    bench: Bench
    objective: Objective
    cut: Ints | Shorts | None = None
    until: int = 0
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.bench.problem.seed)

    def best_of(self, drafts: dict[str, Draft], budget: int) -> dict[str, ChangedDraft]:
        """Improve all drafts and return the resulting states. Budget: a third of the runs for all,
        half of the rest for the best few, the remainder for the best (then the next) one."""
        self.until = self.bench.spent + budget
        found = self._improve({name: self.start(draft) for name, draft in drafts.items()}, 1 / 3)
        best = dict(list(found.items())[:FINALISTS])
        best = self._improve(best | self._bind_free_tasks(best), 1 / 2)
        for name, state in list(best.items())[:FINALISTS]:
            best[name] = self.climb(state, MAX_KICKS)
        return found | best

    def _improve(self, states: dict[str, ChangedDraft], share: float) -> dict[str, ChangedDraft]:
        """Improve the states with a share of the remaining runs; return them best first."""
        end = self.until
        part = max(MIN_RUNS, int(share * (end - self.bench.spent) / len(states)))
        found: dict[float, tuple[str, ChangedDraft]] = {}
        for name, state in sorted(states.items(), key=_mean):
            self.until = min(end, self.bench.spent + part)
            state = self.climb(state)
            found.setdefault(state.mean, (name, state))
        self.until = end
        return dict(found[mean] for mean in sorted(found))

    def start(self, draft: Draft) -> ChangedDraft:
        """Return the start state of a draft; its value is infinite if no runs are left."""
        values = self.values([draft], TRIALS)
        return ChangedDraft(draft, values[0] if values else np.full(len(TRIALS), np.inf))

    def _bind_free_tasks(self, states: dict[str, ChangedDraft]) -> dict[str, ChangedDraft]:
        """Return copies of the states with free tasks, with each task bound to where it ran."""
        found = {}
        for name, state in states.items():
            draft = state.draft
            loose = draft.part is None or bool((draft.part == FREE).any())
            by_law = draft.placement.law is not None and draft.values is None
            if loose and by_law and self.has_runs(MIN_RUNS):
                ran = self.bench.trace_tasks(draft, TRIALS[0])[:, NODE].astype(np.int64)
                bound = bind_where_run(self.bench.problem, draft, ran, "unplanned")
                changed = replace(self.start(bound), done=(*state.done, "tasks bound"))
                found[f"{name}, bound"] = replace(changed, shifted=state.shifted)
        return found

    def has_runs(self, runs: int) -> bool:
        """Whether the budget allows this number of further runs."""
        return self.until - self.bench.spent >= runs

    def values(self, drafts: Sequence[Draft], runs: range) -> list[Floats]:
        """Return the objective values of each draft in these runs, as far as the budget allows."""
        room = max(0, self.until - self.bench.spent) // len(runs)
        outcomes = self.bench.run(drafts[:room], runs)
        return [np.array([self.objective.value_of_run(run) for run in part]) for part in outcomes]

    def climb(self, state: ChangedDraft, kicks: int = 0) -> ChangedDraft:
        """Apply improving moves while runs are left, and return the best state.

        In a local optimum, apply a random set of the cheapest moves (a perturbation) and continue
        from there, until `kicks` perturbations in a row bring no improvement.
        """
        current, moves = self._descend(state)
        best, left = current, kicks
        while left and moves and self.has_runs(BATCH):
            left -= 1
            among = moves[:KICK_CANDIDATES]
            order = self.random.permutation(len(among)).tolist()
            kicked = best.apply(islice(_disjoint_moves(among[i] for i in order), MOVES_PER_KICK))
            current, cheap = self._descend(replace(kicked, value=self.start(kicked.draft).value))
            if current.mean < best.mean:
                best, moves, left = current, cheap, kicks
        return best

    def _descend(self, state: ChangedDraft) -> tuple[ChangedDraft, list[Move]]:
        """Return the local optimum reached and its moves of single tasks, cheapest first. Moves of
        types and kinds are searched only once per draft, as they are many; then single tasks."""
        while not state.kinds_settled and self.has_runs(len(TRIALS)):
            before, moves = state, self._moves_of_kinds(state.draft)
            while (found := self._step(state, moves, MIN_KIND_SAVING)[0]) is not state:
                state = found
            state = replace(state, kinds_settled=state is before and self.has_runs(len(TRIALS)))
        while True:
            found, lost = self._step(state, self._moves_of_tasks(state.draft), MIN_SAVING)
            if found is state:
                return state, lost
            state = found

    def _moves_of_kinds(self, draft: Draft) -> Iterator[Move]:
        return moves_of_kinds(self.bench.problem, draft, self.cut)

    def _moves_of_tasks(self, draft: Draft) -> Iterator[Move]:
        if self._can_weigh_tasks(draft) and self.has_runs(len(TRIALS) + 1):
            rows = self.bench.trace_tasks(draft, TRIALS[0])
            yield from moves_of_tasks(self.bench.problem, draft, rows)

    def _can_weigh_tasks(self, draft: Draft) -> bool:
        bound = draft.part is not None and bool((draft.part != FREE).any())
        return bound and self.bench.problem.work.tasks * draft.parts <= MAX_ENTRIES

    def _step(
        self, state: ChangedDraft, moves: Iterator[Move], least: float
    ) -> tuple[ChangedDraft, list[Move]]:
        """Return the state after the first improving moves, or the same state and all moves,
        cheapest first."""
        lost: list[tuple[float, Move]] = []
        while self.has_runs(len(TRIALS)) and (some := list(islice(moves, BATCH))):
            first = self.values([move.change(state.draft) for move in some], TRIALS[:1])
            ranked = sorted(zip((float(v[0]) for v in first), some, strict=False), key=_value)
            lost += ranked
            found = self._try_together(
                state, [move for v, move in ranked if v < state.value[0]], least
            )
            if found is not None:
                return found, []
        return state, [move for _, move in sorted(lost, key=_value)]

    def _try_together(
        self, state: ChangedDraft, paying: Sequence[Move], least: float
    ) -> ChangedDraft | None:
        """Return the best state of combined moves (all disjoint ones, the best half, ..., the best
        one) in all trial runs; `paying`: best first. None: no state saves more than `least`."""
        apart = list(_disjoint_moves(paying))
        found = [state.apply(apart[: len(apart) >> k]) for k in range(len(apart).bit_length())]
        values = self.values([one.draft for one in found], TRIALS)
        at = min(range(len(values)), key=lambda k: float(np.mean(values[k])), default=None)
        if at is None or state.mean - float(np.mean(values[at])) <= least * state.mean:
            return None
        return replace(found[at], value=values[at])


def _mean(row: tuple[str, ChangedDraft]) -> float:
    return row[1].mean


def _value(row: tuple[float, Move]) -> float:
    return row[0]


def _disjoint_moves(moves: Iterable[Move]) -> Iterator[Move]:
    """Yield the moves that share no item of `subjects` with an earlier yielded move."""
    seen: set[object] = set()
    for move in moves:
        if seen.isdisjoint(move.subjects):
            seen.update(move.subjects)
            yield move
