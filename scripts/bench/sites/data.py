"""`make bench-sites`: bytes between two sites, by placement, on a real MooseFS.

Five nodes with links of 200 Mbit, two of them behind one link of 50 Mbit; Montage, replayed.
Results are in build/bench-sites-data.json: what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from scripts.bench.gain.bedding import SLOTS, replayed, started
from scripts.bench.gain.cases import case_of
from scripts.bench.gain.columns import Case
from scripts.bench.gain.results import Run
from scripts.bench.gain.rows import ROWS
from scripts.bench.sites.data_page import page
from scripts.bench.sites.two_sites import apart
from tests.support import shaped
from tests.support.shaped import MooseBed

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.model import Placement
from tracehint.analyzer.predict.placement import default, local
from tracehint.analyzer.predict.prediction import Configuration, predict
from tracehint.hintgen.plan.model import Problem
from tracehint.hintgen.plan.planner import plan

BY = 16  # divisor of sizes
SCALES = {"data": "bound by data", "even": "sizes and times divided alike"}
NEAR, FAR = "near", "far"
SITES = {"A": NEAR, "B": FAR, "C": NEAR, "D": FAR, "E": NEAR}  # no order that a plan could guess
_NODE = f'[[nodes]]\ncount = 1\ncores = {SLOTS}\nlink_mbit = 200\nsite = "{{site}}"\n'
_SITE = '[[sites]]\nname = "{name}"\nup_mbit = 50\ndown_mbit = 50\n'


def cluster() -> Cluster:
    """The cluster file of the bed."""
    parts = [_NODE.format(site=site) for site in SITES.values()]
    parts += [_SITE.format(name=name) for name in (NEAR, FAR)]
    found = parse_cluster('base = "moosefs"\nname = "two-sites"\n' + "".join(parts), "two-sites")
    return found.with_store(client_cache=0)


def _without_sites(case: Case) -> Case:
    own = case.cluster
    words = [replace(node, words={**node.words, "site": ""}) for node in own.nodes]
    return replace(case, cluster=replace(own, nodes=tuple(words), sites=()))


def _planned(case: Case) -> Placement:
    found = plan(Problem(case.analysis, case.work, case.cluster, staged=True))
    return replace(found.estimate(found.chosen).draft.placement, name=f"plan: {found.chosen}")


COLUMNS: dict[str, Callable[[Case], Placement]] = {
    "default": lambda case: default(case.work, case.cluster),
    "local-first": lambda case: local(case.work, case.cluster),
    "planned, sites not told": lambda case: _planned(_without_sites(case)),
    "planned": _planned,
}


@dataclass(frozen=True)
class Between(MooseBed):
    """The bed; what counts are bytes between its sites."""

    sent: Callable[[], int] = int

    def received(self) -> int:
        """Bytes that went between the sites so far."""
        return self.sent()


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["title"], row["column"], row["number"]


def _row(case: Case, column: str, placement: Placement, run: Run) -> dict[str, Any]:
    """One replay, and what was predicted for its placement."""
    point = Configuration(column, case.cluster, column, lambda _w, _c: placement)
    found = predict(case.work, [point])[0]
    return {
        "title": case.row.title,
        "column": column,
        "number": run.number,
        "placement": placement.name,
        "seconds": run.seconds,
        "bytes": run.bytes,
        "predicted_seconds": found.seconds,
        "predicted_bytes": found.outcome.site_bytes,
        "outputs": run.outputs,
        "astray": run.astray,
        "others": run.load["others"],
    }


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", nargs="+", default=["montage-2mass"], choices=list(ROWS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path("build/bench-sites-data.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/reference/sites-data.md"))
    given = parser.parse_args()
    corpus = Path(os.environ.get("TRACEHINT_DATA", "")) / "wfinstances" / "corpus.tar.xz"
    if not corpus.is_file():
        sys.exit("bench-sites: TRACEHINT_DATA does not name a folder with wfinstances")
    if why := shaped.missing():
        sys.exit(f"bench-sites: {why}")
    rows = json.loads(given.results.read_text()) if given.results.exists() else []
    given.results.parent.mkdir(parents=True, exist_ok=True)
    far = [label for label, site in SITES.items() if site == FAR]
    with started() as bed, apart(bed, far, "50mbit") as sent:
        between = Between(bed.nodes, bed.space, bed.folder, bed.topology, sent)
        for name, scale in product(given.row, SCALES):
            row = replace(ROWS[name], by=BY, title=f"{ROWS[name].title}, {SCALES[scale]}")
            case = case_of(row, scale, corpus, given.results.parent, cluster())
            wanted = {column: make(case) for column, make in COLUMNS.items()}
            for number in range(given.runs):
                for column, placement in wanted.items():
                    if (row.title, column, number) in {_key(known) for known in rows}:
                        continue
                    run = replayed(between, case, column.replace(" ", "-"), number, placement)
                    rows.append(_row(case, column, placement, run))
                    given.results.write_text(json.dumps(rows, indent=1))
                    print(rows[-1], file=sys.stderr, flush=True)
    given.page.write_text(page(rows, list(COLUMNS)), encoding="utf-8")
    print(f"wrote {given.page}")


if __name__ == "__main__":
    main()
