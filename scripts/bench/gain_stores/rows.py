"""The rows, the same for every store, each a WfFormat instance."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.bench.gain.cases import imported
from scripts.bench.gain.columns import Case
from scripts.bench.gain.rows import DATA_BOUND
from scripts.bench.gain.rows import ROWS as REAL
from scripts.bench.gain.rows import Row as Hand

from tracehint.analyzer.model import Options
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.workload import ScaleFactors, from_analysis
from tracehint.hintgen.inputs import load_run

NODES = 5
MB = 1 << 20
PRIVATE = 30_000  # bytes of an input that one task reads


@dataclass(frozen=True, kw_only=True)
class Row:
    """`instance`: WfFormat of a made one, or None: `hand.source` of the corpus. `by`: divisor of
    sizes. `unread`: bytes of an input that every task declares and none reads (engines that have
    lists only)."""

    name: str
    title: str
    instance: Callable[[], dict[str, Any]] | None
    hand: Hand
    by: float = 1.0
    unread: int = 0


def pipelines(chains: int = 10, size: int = 30 * MB) -> dict[str, Any]:
    """Chains of three tasks with two files between them."""
    tasks, sizes = [], {}
    for i in range(chains):
        names = [f"in_{i}.dat", f"first_{i}.dat", f"second_{i}.dat", f"sum_{i}.txt"]
        sizes |= dict(zip(names, (PRIVATE, size, size, 100), strict=True))
        for step, program in enumerate(("make", "filter", "count")):
            tasks.append((f"{program}_{i}", [names[step]], [names[step + 1]]))
    return _instance(tasks, sizes)


def readers(count: int = 10, size: int = 64 * MB) -> dict[str, Any]:
    """Tasks that all read one file, and each one of its own."""
    tasks, sizes = [], {"db.dat": size}
    for i in range(count):
        sizes |= {f"query_{i}.dat": PRIVATE, f"found_{i}.txt": 100}
        tasks.append((f"search_{i}", [f"query_{i}.dat", "db.dat"], [f"found_{i}.txt"]))
    return _instance(tasks, sizes)


def _instance(
    tasks: list[tuple[str, list[str], list[str]]], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """WfFormat 1.5; a task takes two seconds, so that they run side by side."""
    maker = {out: name for name, _, made in tasks for out in made}
    parents = {name: sorted({maker[f] for f in read if f in maker}) for name, read, _ in tasks}
    described = [
        {
            "name": name.rpartition("_")[0], "id": name, "inputFiles": read, "outputFiles": made,
            "parents": parents[name],
            "children": [child for child, above in parents.items() if name in above],
        }
        for name, read, made in tasks
    ]  # fmt: skip  # a table
    ran = [{"id": name, "runtimeInSeconds": 2.0} for name, _, _ in tasks]
    files = [{"id": name, "sizeInBytes": size} for name, size in sizes.items()]
    return {
        "name": "made", "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": described, "files": files},
            "execution": {"makespanInSeconds": 10, "executedAt": "20260101", "tasks": ran},
        },
    }  # fmt: skip  # a table


def _hand(name: str, title: str, kind: str) -> Hand:
    return Hand(name=name, title=title, source="", learned="", by=1, hand=((kind, "local"),))


_MONTAGE = REAL["montage-dss"]
ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row(name="pipeline", title="Pipeline: 10 chains, two files of 30 MiB each",
            instance=pipelines, hand=_hand("pipeline", "", ".")),
        Row(name="broadcast", title="Broadcast: 10 readers of one file of 64 MiB",
            instance=readers, hand=_hand("broadcast", "", ".")),
        Row(name="montage", title="Montage dss, 178 tasks, sizes / 32", instance=None,
            hand=_MONTAGE, by=_MONTAGE.by),
        Row(name="unread", title="The broadcast, and 32 MiB declared that nobody reads",
            instance=readers, hand=_hand("unread", "", "."), unread=32 * MB),
    )
}  # fmt: skip  # a table


def case_of(row: Row, corpus: Path, folder: Path, cluster: Cluster) -> Case:
    """The row's workload for a cluster, with rules learned on the same instance."""
    folder.mkdir(parents=True, exist_ok=True)
    if row.instance is None:
        bundle = imported(row.hand.source, corpus, folder)
    else:
        bundle = folder / f"{row.name}.trace"
        if not bundle.exists():
            made = folder / f"{row.name}.wf.json"
            made.write_text(json.dumps(row.instance()))
            tool("import", made, "-o", bundle)
    rules = folder / f"{row.name}.hints.json"
    if not rules.exists():
        tool("hints", bundle, "--nodes", str(NODES), "-o", rules)
    analysis = load_run(bundle, Options(nodes=NODES)).analysis
    scale = ScaleFactors(1 / row.by, 1 / (row.by * DATA_BOUND) if row.instance is None else 1.0)
    return Case(row.hand, analysis, from_analysis(analysis, scale), cluster, rules)


def tool(*words: str | Path, cwd: Path | None = None) -> str:
    """Run tracehint; what it said beside its result."""
    done = subprocess.run(
        [sys.executable, "-m", "tracehint", *words], cwd=cwd, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"tracehint {words[0]}: {done.stderr[-2000:]}")
    return done.stderr
