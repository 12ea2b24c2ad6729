"""`make bench-sites`: strategies of metadata over four sites, predicted and then measured.

Four Redis servers are the registries, each busy for a fixed time per operation; clients wait half
a round trip before and after each request, as between two European and two American centres.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scripts.bench.sites.page import page
from scripts.bench.sites.registries import LOOKUP_S, UPDATE_S, connect, registries
from scripts.bench.sites.replay import PER_ENTRY, Replay
from scripts.bench.sites.shapes import NODES, SHAPES
from scripts.bench.sites.shapes import SITES as NAMES

from tracehint.analyzer.predict.metadata.model import STRATEGIES, MetaRun, MetaWork, Sites
from tracehint.analyzer.predict.metadata.request import simulate

TRIPS_MS = ((0.2, 25, 90, 110), (25, 0.2, 100, 120), (90, 100, 0.2, 30), (110, 120, 30, 0.2))
CENTRE = 0


def sites(lookup: float, update: float) -> Sites:
    """Four sites of eight nodes with one core each."""
    each = (NODES // len(NAMES),) * len(NAMES)
    return Sites(NAMES, each, each, np.array(TRIPS_MS) / 1000, lookup, update, PER_ENTRY)


async def probe(folder: Path) -> tuple[float, float]:
    """Seconds of one lookup and one update on an idle registry beside the client."""
    async with registries(folder, 1) as (socket,):
        link = await connect(socket, 0)
        found = []
        for busy, command in ((LOOKUP_S, [b"GET", b"x"]), (UPDATE_S, [b"SET", b"x", b"1"])):
            begin = time.monotonic()
            for _ in range(200):
                await link.ask(busy, command)
            found.append((time.monotonic() - begin) / 200)
        link.writer.close()
    return found[0], found[1]


async def measured(work: MetaWork, at: Sites, strategy: str, folder: Path) -> float:
    """Seconds of one replay on fresh registries."""
    async with registries(folder, len(NAMES)) as sockets:
        return await Replay(work, at, strategy, CENTRE).run(sockets)


def row(shape: str, operations: int, strategy: str, costs: tuple[float, float]) -> dict[str, Any]:
    """One comparison."""
    work, at = SHAPES[shape](operations), sites(*costs)
    run = MetaRun(STRATEGIES.index(strategy), CENTRE)
    predicted = simulate(work, at, [run])[0]
    with tempfile.TemporaryDirectory(prefix="sites-") as folder:
        seconds = asyncio.run(measured(work, at, strategy, Path(folder)))
    return {
        "shape": shape,
        "operations": operations,
        "strategy": strategy,
        "predicted": predicted.seconds,
        "measured": seconds,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Go on where the stored rows end, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, nargs="+", default=[100, 200, 1000])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--results", type=Path, default=Path("build/bench-sites.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/reference/sites-measured.md"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sites-") as folder:
        costs = asyncio.run(probe(Path(folder)))
    rows: list[dict[str, Any]] = (
        json.loads(given.results.read_text()) if given.results.exists() else []
    )
    known = {(r["shape"], r["operations"], r["strategy"]) for r in rows}
    for wanted in product(given.operations, given.shapes, STRATEGIES):
        operations, shape, strategy = wanted
        if (shape, operations, strategy) in known:
            continue
        rows.append(row(shape, operations, strategy, costs))
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(rows, indent=1))
        last = rows[-1]
        print(
            f"{shape:14} {operations:5} {strategy:22} measured {last['measured']:7.2f} s"
            f"  predicted {last['predicted']:7.2f} s",
            flush=True,
        )
    given.page.write_text(page(rows, costs))
    print(f"wrote {given.page}")


if __name__ == "__main__":
    main()
