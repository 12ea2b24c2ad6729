"""Files of a recorded run as paths for the next one, with what the run knows about each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.paths import inside
from tracehint.hintgen.match.match import Declared

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis


@dataclass(frozen=True)
class RunPaths:
    """Paths below the data root, and their producing and consuming tasks (columns of `known`)."""

    files: list[bytes]
    known: Declared


def run_paths(run: str | Path) -> RunPaths:
    """Read a bundle, or the JSON of `analyze`; raises BundleError or InputError."""
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.hintgen.learn.facts import facts_of

    analysis = load_run(run, Options()).analysis
    return paths_in(analysis, facts_of(analysis))


def paths_in(analysis: Analysis, facts: pa.Table) -> RunPaths:
    """Those of a run that is there already, with its facts."""
    import pyarrow as pa

    from tracehint.hintgen.learn.columns import lists

    tasks = analysis.tasks.select(["task", "type"]).to_pylist()
    names = {row["task"]: f"{row['type']}:{row['task']}" for row in tasks}
    facts = facts.filter(pa.array([inside(path) for path in facts["path"].to_pylist()], pa.bool_()))
    makers = lists(facts["producer_types"])
    return RunPaths(
        files=facts["path"].to_pylist(),
        known=Declared(
            producer_types=[some[0] if some else None for some in makers],
            consumer_types=lists(facts["consumer_types"]),
            producers=[[names[t] for t in some] for some in lists(facts["producers"])],
            consumers=[[names[t] for t in some] for some in lists(facts["consumers"])],
            sizes=facts["size_bytes"].to_pylist(),
        ),
    )
