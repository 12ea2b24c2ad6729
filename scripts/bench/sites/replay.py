"""Replay metadata operations on real registries, under each strategy."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
from scripts.bench.sites.registries import LOOKUP_S, UPDATE_S, Registry, connect

from tracehint.analyzer.predict.metadata.model import COMPUTING, LOOKUP, MetaWork, Sites
from tracehint.analyzer.predict.metadata.request import homes

PER_ENTRY = 0.0002  # of the agent's work


class Replay:
    """One run. `strategy` and `centre` as the predictor has them."""

    def __init__(self, work: MetaWork, sites: Sites, strategy: str, centre: int) -> None:
        self.work, self.sites, self.strategy, self.centre = work, sites, strategy, centre
        self.home = homes(work.paths, len(sites.names))
        self.made: dict[int, int] = {}  # entry -> site
        self.fresh: list[list[int]] = [[] for _ in sites.names]
        self.seen: dict[tuple[int, int], asyncio.Event] = {}
        self.missing = np.bincount(work.dep, minlength=work.tasks)
        self.ready = [asyncio.Queue[int]() for _ in sites.names]
        self.done = 0
        self.over = asyncio.Event()

    async def run(self, sockets: list[Path]) -> float:
        """Seconds from the first operation to the last."""
        links = [
            await self._links(sockets, s) for s, n in enumerate(self.sites.cores) for _ in range(n)
        ]
        where = [s for s, n in enumerate(self.sites.cores) for _ in range(n)]
        agent_links = await self._links(sockets, self.centre)
        for task in np.flatnonzero(self.missing == 0).tolist():
            self._make_ready(task)
        begin = time.monotonic()
        jobs = [asyncio.create_task(self._core(s, k)) for s, k in zip(where, links, strict=True)]
        if self.strategy == "replicated":
            jobs.append(asyncio.create_task(self._agent(agent_links)))
        over = asyncio.create_task(self.over.wait())
        await asyncio.wait([*jobs, over], return_when=asyncio.FIRST_COMPLETED)
        seconds = time.monotonic() - begin
        for job in jobs:
            if job.done():
                job.result()
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        for link in [*agent_links, *(link for row in links for link in row)]:
            link.writer.close()
        return seconds

    async def _links(self, sockets: list[Path], site: int) -> list[Registry]:
        trip = self.sites.round_trip[site]
        return [await connect(path, float(trip[at]) / 2) for at, path in enumerate(sockets)]

    def _make_ready(self, task: int) -> None:
        self.ready[self.sites.names.index(self.work.site[task])].put_nowait(task)

    async def _core(self, site: int, links: list[Registry]) -> None:
        work = self.work
        while True:
            task = await self.ready[site].get()
            for op in range(int(work.op_begin[task]), int(work.op_begin[task + 1])):
                if work.op_kind[op] == COMPUTING:
                    await asyncio.sleep(float(work.op_seconds[op]))
                elif work.op_kind[op] == LOOKUP:
                    await self._look_up(int(work.op_entry[op]), site, links)
                else:
                    await self._update(int(work.op_entry[op]), site, links)
            for after in work.dep[work.dep_begin[task] : work.dep_begin[task + 1]].tolist():
                self.missing[after] -= 1
                if not self.missing[after]:
                    self._make_ready(after)
            self.done += 1
            if self.done == work.tasks:
                self.over.set()

    def _first(self, entry: int, site: int) -> int:
        """The registry that is asked first."""
        if self.strategy == "centralised":
            return self.centre
        return int(self.home[entry]) if self.strategy == "decentralised" else site

    async def _look_up(self, entry: int, site: int, links: list[Registry]) -> None:
        at, get = self._first(entry, site), [b"GET", b"%d" % entry]
        found = (await links[at].ask(LOOKUP_S, get))[0]
        if found is not None:
            return
        if self.strategy == "decentralised-replica" and self.home[entry] != site:
            await links[int(self.home[entry])].ask(LOOKUP_S, get)
        elif self.strategy == "replicated" and self.made.get(entry, site) != site:
            await self.seen.setdefault((entry, site), asyncio.Event()).wait()
            found = (await links[at].ask(LOOKUP_S, get))[0]
            assert found is not None, "told, but not there"

    async def _update(self, entry: int, site: int, links: list[Registry]) -> None:
        at, put = self._first(entry, site), [b"SET", b"%d" % entry, b"%d" % site]
        commands = [put]
        if self.strategy == "replicated":
            commands.append([b"RPUSH", b"fresh", b"%d" % entry])
        await links[at].ask(UPDATE_S, *commands)
        self.made[entry] = site
        home = int(self.home[entry])
        if self.strategy == "decentralised-replica" and home != site:
            await links[home].ask(UPDATE_S, put)

    async def _agent(self, links: list[Registry]) -> None:
        """Ask all sites for what is new, then tell all sites, and again."""
        while True:
            carried: list[tuple[bytes, int]] = []
            for site, link in enumerate(links):
                got, _ = await link.ask(
                    LOOKUP_S, [b"LRANGE", b"fresh", b"0", b"-1"], [b"DEL", b"fresh"]
                )
                assert isinstance(got, list)
                carried += [(entry, site) for entry in got]
            for site, link in enumerate(links):
                new = [(entry, origin) for entry, origin in carried if origin != site]
                if not new:
                    continue
                busy = UPDATE_S + PER_ENTRY * len(new)
                await link.ask(busy, *([b"SET", entry, b"%d" % origin] for entry, origin in new))
                for entry, _ in new:
                    self.seen.setdefault((int(entry), site), asyncio.Event()).set()
