"""Simulation of a run's metadata operations over several sites.

Tasks look up and change entries in registries: one per site, each with a queue. The strategy
decides which registries an operation visits, in order (docs/explanation/sites.md). Unit: seconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np

from tracehint.analyzer.arrays import Shorts
from tracehint.analyzer.predict.metadata.model import (
    COMPUTING,
    LOOKUP,
    MOST_OPERATIONS,
    TENTHS,
    MetaOutcome,
    MetaRun,
    MetaWork,
    Sites,
)
from tracehint.errors import InputError

_CENTRAL, _REPLICATED, _DECENTRAL = range(3)  # of STRATEGIES; the last one is decentralised-replica
_LEAST_ROUND = 1e-3  # minimum duration of an agent's round, so that it never spins

# A process in simulated time: yields the time at which it continues; None: when it is woken.
Process = Generator[float | None, None, None]


def simulate(work: MetaWork, sites: Sites, runs: Sequence[MetaRun]) -> list[MetaOutcome]:
    """Simulate each run; return the outcomes in order. Raises InputError for cyclic dependencies
    and for too many operations."""
    if work.operations > MOST_OPERATIONS:
        raise InputError(
            f"{work.operations:,} metadata operations are too many to simulate",
            f"The limit is {MOST_OPERATIONS:,}: predict a smaller run of the same workflow.",
        )
    return [RegistrySimulation(work, sites, run).outcome() for run in runs]


def homes(paths: Sequence[bytes], sites: int) -> Shorts:
    """Return the home site of each entry under the decentralised strategies: a hash of its name,
    equal in every run."""
    return np.fromiter((crc32(path) % sites for path in paths), np.int32, len(paths))


def pins_of(work: MetaWork, sites: Sites) -> list[int]:
    """Return the recorded site of each task if all tasks have one with nodes in the cluster;
    otherwise -1 (not pinned) for all tasks."""
    number = {name: at for at, name in enumerate(sites.names) if sites.cores[at]}
    found = [number.get(name, -1) for name in work.site]
    return found if -1 not in found else [-1] * work.tasks


class RegistrySimulation:
    """Simulation of one run: a heap of processes, tasks waiting for cores, and registry queues."""

    def __init__(self, work: MetaWork, sites: Sites, run: MetaRun) -> None:
        count = len(sites.names)
        self._work, self._sites, self._run = work, sites, run
        self._half = (np.asarray(sites.round_trip) / 2).tolist()
        self._cost = (sites.lookup, sites.update)  # by kind
        columns = work.op_kind, work.op_entry, work.op_seconds
        steps = list(zip(*(values.tolist() for values in columns), strict=True))
        self._steps = [steps[a:b] for a, b in pairwise(work.op_begin.tolist())]
        after = work.dep.tolist()
        self._after = [after[a:b] for a, b in pairwise(work.dep_begin.tolist())]
        self._missing = np.bincount(work.dep, minlength=work.tasks).tolist()
        self._pin, self._near = pins_of(work, sites), [-1] * work.tasks
        self._home = homes(work.paths, count).tolist()
        self._known = work.known.tolist()
        self._made = [-1] * len(work.paths)  # per entry: site that created it; -1: not yet
        self._when = [0.0] * len(work.paths)
        self._seen = [0] * len(work.paths)  # per entry: bit set of sites whose registry holds it
        self._parked: dict[int, list[tuple[int, Process]]] = {}  # entry -> (site, waiting process)
        self._cores, self._waiting = list(sites.cores), [deque[int]() for _ in range(count)]
        self._free, self._busy = [0.0] * count, [0.0] * count
        self._served, self._abroad = [0] * count, [0] * count
        self._fresh: list[list[int]] = [[] for _ in range(count)]  # changed since the last visit
        self._agent_rests = False
        self._agent = self._running = self._synchronise()
        self._heap: list[tuple[float, int, Process]] = []
        self._now, self._events, self._done, self._operations = 0.0, 0, 0, 0
        self._tenths: list[float] = []
        self._late: list[float] = []  # seconds until an entry was visible at another site

    def outcome(self) -> MetaOutcome:
        """Simulate the run. Raises InputError for cyclic dependencies."""
        tasks = self._work.tasks
        for task in range(tasks):
            if not self._missing[task]:
                self._queue(task)
        if self._run.strategy == _REPLICATED:
            self._schedule(0.0, self._agent)
        while self._heap and self._done < tasks:
            self._now, _, self._running = heapq.heappop(self._heap)
            when = next(self._running, None)
            if when is not None:
                self._schedule(when, self._running)
        if self._done < tasks:
            raise InputError(
                f"{tasks - self._done} of {tasks} tasks wait for each other",
                "A run must be a graph without cycles: check the declared inputs and outputs.",
            )
        rows = zip(self._served, self._busy, self._abroad, strict=True)
        return MetaOutcome(
            seconds=self._now,
            operations=self._operations,
            stale_mean=sum(self._late) / len(self._late) if self._late else 0.0,
            stale_most=max(self._late, default=0.0),
            tenths=np.array(self._tenths or [0.0] * TENTHS),
            sites=np.array(list(rows), float),
        )

    def _schedule(self, when: float, process: Process) -> None:
        self._events += 1  # events at the same time run in the order in which they were scheduled
        heapq.heappush(self._heap, (when, self._events, process))

    def _queue(self, task: int) -> None:
        """Start or enqueue a ready task: at its pinned site, near its input, or at a free core."""
        pin = self._pin[task]
        site = pin if pin >= 0 else self._near[task] if self._run.near else -1
        if site < 0 or (pin < 0 and not self._cores[site]):
            site = self._find_idlest_site(task)
        if self._cores[site]:
            self._start(task, site)
        else:
            self._waiting[site].append(task)

    def _find_idlest_site(self, task: int) -> int:
        """Return the site with most free cores, or with the fewest waiting tasks."""
        count = len(self._cores)
        first = crc32(b"%d %d" % (self._run.seed, task)) % count
        order = [(first + i) % count for i in range(count)]
        some = [site for site in order if self._sites.cores[site]]
        return max(some, key=lambda site: self._cores[site] - len(self._waiting[site]))

    def _start(self, task: int, site: int) -> None:
        self._cores[site] -= 1
        self._schedule(self._now, self._task(task, site))

    def _finish(self, task: int, site: int) -> None:
        """Free the core: for the task's dependents, tasks queued here, or the longest queue."""
        self._done += 1
        self._cores[site] += 1
        for after in self._after[task]:
            self._near[after] = site
            self._missing[after] -= 1
            if not self._missing[after]:
                self._queue(after)
        if not self._cores[site]:
            return
        longest = site
        if not self._waiting[site]:
            for other, queue in enumerate(self._waiting):
                if len(queue) > len(self._waiting[longest]) and self._pin[queue[0]] < 0:
                    longest = other
        if self._waiting[longest]:
            self._start(self._waiting[longest].popleft(), site)

    def _task(self, task: int, site: int) -> Process:
        total = self._work.operations
        for kind, entry, seconds in self._steps[task]:
            if kind == COMPUTING:
                yield self._now + seconds
                continue
            for leg, at in enumerate(self._registries(kind, entry, site)):
                self._abroad[site] += at != site
                yield self._now + self._half[site][at]
                end = self._serve(at, self._cost[kind])
                while kind == LOOKUP and self._is_unknown_here(entry, at):
                    self._parked.setdefault(entry, []).append((site, self._running))
                    yield None
                    end = self._serve(at, self._cost[kind])
                if kind != LOOKUP and not leg:
                    self._record_change(entry, site, at, end)
                yield end + self._half[site][at]
            self._operations += 1
            while (len(self._tenths) + 1) * total <= self._operations * TENTHS:
                self._tenths.append(self._now)
        self._finish(task, site)

    def _registries(self, kind: int, entry: int, site: int) -> Iterator[int]:
        """Yield the sites whose registries an operation visits, each after the previous visit."""
        strategy, home = self._run.strategy, self._home[entry]
        if strategy == _CENTRAL:
            yield self._run.centre
        elif strategy == _REPLICATED:
            yield site
        elif strategy == _DECENTRAL:
            yield home
        else:
            yield site
            found = kind == LOOKUP and (self._known[entry] or self._made[entry] == site)
            if home != site and not found:
                yield home

    def _serve(self, site: int, seconds: float) -> float:
        """Serve an operation first come, first served; return when the registry is done."""
        self._served[site] += 1
        return self._occupy(site, seconds)

    def _occupy(self, site: int, seconds: float) -> float:
        self._busy[site] += seconds
        self._free[site] = max(self._free[site], self._now) + seconds
        return self._free[site]

    def _record_change(self, entry: int, site: int, at: int, when: float) -> None:
        """Record the change of an entry at a registry, and wake the agent."""
        if not self._known[entry] and self._made[entry] < 0:
            self._made[entry], self._when[entry], self._seen[entry] = site, when, 1 << at
        if self._run.strategy == _REPLICATED:
            self._fresh[at].append(entry)
            if self._agent_rests:
                self._agent_rests = False
                self._schedule(self._now, self._agent)

    def _is_unknown_here(self, entry: int, at: int) -> bool:
        """Whether a replicated entry was created elsewhere and is not visible here yet."""
        made = self._run.strategy == _REPLICATED and self._made[entry] >= 0
        return made and not self._seen[entry] >> at & 1

    # The agent of the replicated strategy collects the changes since its last visit from each site,
    # then sends each site the changes of the other sites, one site after the other.

    def _synchronise(self) -> Process:
        centre, begun = self._half[self._run.centre], 0.0
        sites = range(len(centre))
        while True:
            carried: list[tuple[int, int]] = []  # (entry, from)
            back = begun
            for site in sites:
                yield back + centre[site]
                carried += [(entry, site) for entry in self._fresh[site]]
                cost = len(self._fresh[site]) * self._sites.sync + self._sites.lookup
                self._fresh[site] = []
                yield self._occupy(site, cost)
                back = self._now + centre[site]
            for site in sites if carried else ():
                yield back + centre[site]
                news = [entry for entry, source in carried if source != site]
                cost = len(news) * self._sites.sync + self._sites.update if news else 0.0
                yield self._occupy(site, cost)
                self._publish(news, site)
                back = self._now + centre[site]
            length = max(back - begun, _LEAST_ROUND)
            begun += length
            if not carried and not any(self._fresh):
                # idle rounds are not simulated; the next one includes the change that wakes it
                self._agent_rests = True
                yield None
                if self._now > begun:
                    begun = self._now + (1 - (self._now - begun) / length % 1) * length

    def _publish(self, news: Sequence[int], site: int) -> None:
        """Make entries visible at a site, and wake the processes that wait for them there."""
        for entry in news:
            if self._made[entry] < 0 or self._seen[entry] >> site & 1:
                continue
            self._late.append(self._now - self._when[entry])
            self._seen[entry] |= 1 << site
            waiting = self._parked.pop(entry, [])
            for where, process in waiting:
                if where == site:
                    self._schedule(self._now, process)
            if rest := [one for one in waiting if one[0] != site]:
                self._parked[entry] = rest
