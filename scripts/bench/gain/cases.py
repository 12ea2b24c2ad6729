"""Conversion of an instance to a workload by the project's commands: import, analyze, hints."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from scripts.bench.gain.columns import Case
from scripts.bench.gain.rows import SCALES, Row

from tracehint.analyzer.model import Options
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import COMPUTE, Workload
from tracehint.analyzer.predict.workload import ScaleFactors, from_analysis
from tracehint.hintgen.hints.hintfile import dump, load
from tracehint.hintgen.inputs import load_run
from tracehint.hintgen.plan.model import Problem
from tracehint.hintgen.plan.planner import chosen_rules

NODES = 5


def case_of(row: Row, scale: str, corpus: Path, folder: Path, cluster: Cluster) -> Case:
    """Return the case of a row; bundles and rules are stored in `folder`."""
    bundle = imported(row.source, corpus, folder)
    rules = folder / f"{Path(row.learned).name}.hints.json"
    if not rules.exists():
        learned = imported(row.learned, corpus, folder)
        _tool("hints", learned, "--nodes", str(NODES), "-o", rules)
    analysis = load_run(bundle, Options(nodes=NODES)).analysis
    factor = ScaleFactors(1 / row.by, 1 / (row.by * SCALES[scale].times))
    by_name = folder / f"{row.name}-{scale}.rules.json"
    if not by_name.exists():
        seen = load_run(imported(row.learned, corpus, folder), Options(nodes=NODES)).analysis
        problem = Problem(seen, _asleep(from_analysis(seen, factor)), cluster, load(rules))
        dump(chosen_rules(problem)[0], by_name)
    return Case(row, analysis, _asleep(from_analysis(analysis, factor)), cluster, rules, by_name)


def _asleep(work: Workload) -> Workload:
    """Model replays: their tasks sleep instead of computing, and not while they read."""
    seconds = np.where(work.of_kind(COMPUTE), work.op_seconds, 0.0)
    return replace(work, busy=np.zeros(work.tasks), op_seconds=seconds)


def imported(name: str, corpus: Path, folder: Path) -> Path:
    """Import an instance of the corpus, if not done before; return the bundle."""
    bundle = folder / f"{Path(name).name}.trace"
    if not bundle.exists():
        with tarfile.open(corpus, "r:xz") as archive:
            stream = archive.extractfile(f"corpus/{name}.json")
            assert stream is not None
            source = folder / f"{Path(name).name}.json"
            source.write_bytes(stream.read())
        _tool("import", source, "-o", bundle)
    return bundle


def _tool(*words: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tracehint", *words], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"tracehint {words[0]}: {done.stderr[-2000:]}")
