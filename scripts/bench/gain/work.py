"""The measurements on a store, and the location of their files."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.gain.bedding import cluster_of
from scripts.bench.gain.cases import case_of
from scripts.bench.gain.columns import BY_HAND, Case
from scripts.bench.gain.placements import PLANNED, placement_of, search_of
from scripts.bench.gain.results import Results, load
from scripts.bench.gain.rows import ROWS, SCALES
from scripts.bench.gain.stores import Store

from tracehint.analyzer.predict.model import Placement

ROOT = Path(__file__).parents[3]
OUT = ROOT / "build" / "bench-gain"
FIRST = "moosefs"  # the store whose files and tables are named without it


@dataclass(frozen=True)
class Work:
    """A store, and the archive that instances come from."""

    store: Store
    corpus: Path

    @property
    def folder(self) -> Path:
        """Folder of the store's results."""
        return OUT if self.store.name == FIRST else OUT / self.store.name

    def cluster(self, link: int) -> Path:
        """Return the path of the measured cluster file for links of `link` Mbit/s."""
        return self.folder / f"cluster-{link}.toml"

    def results(self, name: str, scale: str, *, fresh: bool) -> Results:
        """Load the results of a row so far."""
        key = dataclasses.asdict(ROWS[name]) | {"scale": scale}
        return load(self.folder, f"{name}-{scale}", json.loads(json.dumps(key)), fresh=fresh)

    def case(self, name: str, scale: str) -> Case:
        """Return the case of a row at a scale; the cluster must have been measured."""
        cluster = cluster_of(self.cluster(SCALES[scale].link), self.store)
        return case_of(ROWS[name], scale, self.corpus, self.folder, cluster)

    def placement(self, case: Case, scale: str, column: str) -> Placement:
        """Return the placement that is replayed and predicted."""
        found = placement_of(case, column, self._kept(case, scale, column))
        return found if column == BY_HAND else self.store.takes(found)

    def search(self, case: Case, scale: str, column: str) -> str:
        """Return the name of the search that made the placement of a column; empty: none did."""
        return search_of(self._kept(case, scale, column)) if column == PLANNED else ""

    def _kept(self, case: Case, scale: str, column: str) -> Path:
        return self.folder / f"{case.row.name}-{scale}-{column}.placement.json"

    def mark(self, table: str) -> str:
        """Return the mark of this store's table on the page."""
        return f"measured: {table if self.store.name == FIRST else f'{self.store.name} {table}'}"
