"""Hints of a workflow that has not run here yet, from its graph alone.

Sizes and times are not known then. Files are kept on the node that writes them where that is no
slower and moves fewer bytes than the store's default in every simulated run, with files of every
size that is tried; otherwise the first run is only recorded.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import TracehintError
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile, Plan

SIZES = (1_000_000, 10_000_000, 100_000_000)  # bytes of a file
RUNS = 5  # simulated, of each size
MOST_TASKS = 2_000  # more take too long before a command
_READ = 1 << 20  # bytes of a file that tells by its contents whether it is the same
LOCAL_WRITES = "local-writes"
_BATCH_TYPE = re.compile(r"\0(?:-T\0?|--batch-type[=\0])([^\0]*)")


def graph_key(command: tuple[str, ...], cluster: str | None, hosts: int) -> str:
    """What such hints depend on; empty: there can be no such graph. No reader of graphs is loaded:
    a run that has kept hints needs none."""
    if cluster is None or hosts < 2 or not _named_files(command):
        return ""
    named = [Path(word) for word in (*command[1:], cluster) if Path(word).is_file()]
    parts = [(path.read_bytes() if path.stat().st_size < _READ else path.stat().st_mtime_ns)
             for path in named]  # fmt: skip  # a table
    text = repr((__version__, str(Path.cwd()), command, cluster, hosts, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def graph_hints(
    command: tuple[str, ...], cluster: str | None, hosts: int
) -> tuple[HintFile, tuple[str, ...]] | None:
    """Hints for the first run in an allocation of so many nodes, where the engine runs all tasks on
    its own, and the data roots; None: there is no such graph, or they might lose."""
    if cluster is None or hosts < 2 or not (files := _named_files(command)):
        return None
    from tracehint.schemas.arrow import skip_pandas

    skip_pandas()
    from tracehint.adapters.engines.graphs import declared_bundle, is_of

    workflow = next((path for path in reversed(files) if is_of("makeflow", path)), None)
    if workflow is None:
        return None
    from tracehint.analyzer.analyze import analyze
    from tracehint.hintgen.hints.model import HintFile

    try:
        analysis = analyze(declared_bundle(workflow, "makeflow"), owned=True)
        plan = _plan(analysis, cluster, hosts)
    except TracehintError:
        return None  # the engine says itself what is wrong with its file
    if plan is None:
        return None
    return HintFile((), {}, (), plan=plan), tuple(analysis.run["data_roots"])


def _named_files(command: tuple[str, ...]) -> list[Path]:
    """Files that a command of Makeflow names, which has the whole graph in one of them; empty: it
    is none, or does not run the tasks here."""
    from tracehint.adapters.engines.registry import ENGINES

    kinds = _BATCH_TYPE.findall("\0".join(("", *command[1:])))
    other = any(kind != "local" for kind in kinds)
    if other or Path(command[0]).name not in ENGINES["makeflow"].programs:
        return []
    return [Path(word) for word in command[1:] if Path(word).is_file()]


def _plan(analysis: Analysis, given: str, hosts: int) -> Plan | None:
    """Local writes, where they lose with no size of files."""
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.analyzer.predict.model import COMPUTE
    from tracehint.analyzer.predict.workload import from_analysis
    from tracehint.hintgen.plan.drafts import DEFAULT, STRATEGIES
    from tracehint.hintgen.plan.model import Planning, Problem
    from tracehint.hintgen.plan.objective import Bench, estimate
    from tracehint.hintgen.plan.result import chosen_plan

    if analysis.tasks.num_rows > MOST_TASKS:
        return None
    cluster = read_cluster(given).with_nodes(hosts)
    two = [s for s in STRATEGIES if s.name in (DEFAULT, LOCAL_WRITES)]
    for size in SIZES:
        work = from_analysis(analysis)
        moves = ~work.of_kind(COMPUTE)
        work.size[:] = work.op_length[moves] = work.op_bytes[moves] = size
        problem = Problem(analysis, work, cluster, own=cluster)
        drafts = [draft for strategy in two for draft in strategy.make(problem)]
        runs = Bench(problem).run(drafts, range(RUNS))
        for plain, local in zip(*runs, strict=True):
            if local.seconds > plain.seconds or local.network_bytes >= plain.network_bytes:
                return None
    rows = zip(two, drafts, runs, strict=True)
    estimates = tuple(estimate(s, draft, outcomes, 1.0) for s, draft, outcomes in rows)
    return chosen_plan(Planning(problem, estimates, LOCAL_WRITES))[0]
