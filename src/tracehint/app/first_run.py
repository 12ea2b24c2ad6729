"""Hints for the first run of a workflow, from its graph alone.

File sizes and task times are unknown then. The hints keep files on the writer's node if that is no
slower and moves fewer bytes than the store's default in every simulated run, for each file size in
SIZES; otherwise the first run is only recorded.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import TracehintError
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile, Plan
    from tracehint.schemas.store import Bundle

SIZES = (1_000_000, 10_000_000, 100_000_000)  # bytes per file, in the simulations
RUNS = 5  # simulated runs per size
MOST_TASKS = 2_000  # a larger graph would delay the command too much
DRY_RUN_S = 20.0  # timeout of an engine that prints its graph
_MAX_READ = 1 << 20  # bytes; larger files are identified by their mtime, and not searched
LOCAL_WRITES = "local-writes"


def graph_key(command: tuple[str, ...], cluster: str | None, hosts: int) -> str:
    """Return a hash of all inputs of these hints; empty if no graph is available. Imports no graph
    reader, as a run with kept hints needs none."""
    if cluster is None or hosts < 2 or not (files := _files_of_graph(command)[1]):
        return ""
    named = [*files, *(path for path in (Path(cluster),) if path.is_file())]
    parts = [
        (path.read_bytes() if path.stat().st_size < _MAX_READ else path.stat().st_mtime_ns)
        for path in named
    ]
    text = repr((__version__, str(Path.cwd()), command, cluster, hosts, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def graph_hints(
    command: tuple[str, ...], cluster: str | None, hosts: int
) -> tuple[HintFile, tuple[str, ...]] | None:
    """Return hints for the first run on `hosts` nodes, and the data roots. None: the graph is not
    available, the engine runs tasks on other nodes itself, or the hints might cost time."""
    engine, files = _files_of_graph(command)
    if cluster is None or hosts < 2 or not files:
        return None
    from tracehint.schemas.arrow import skip_pandas

    skip_pandas()
    from tracehint.analyzer.analyze import analyze
    from tracehint.hintgen.hints.model import HintFile

    try:
        bundle = _read_graph(engine, command, files)
        analysis = analyze(bundle, owned=True) if bundle is not None else None
        plan = _plan_local_writes(analysis, cluster, hosts) if analysis is not None else None
    except TracehintError:
        return None  # the engine itself reports what is wrong with its file
    if analysis is None or plan is None:
        return None
    return HintFile((), {}, (), plan=plan), tuple(analysis.run["data_roots"])


def _files_of_graph(command: tuple[str, ...]) -> tuple[str, list[Path]]:
    """Return the engine that the command starts, and the files that it reads. No files: the graph
    is not available before the run, or the tasks do not run on this node."""
    from tracehint.adapters.engines.registry import ENGINES, engine_of_program

    engine = engine_of_program(Path(command[0]).name)
    facts = ENGINES.get(engine)
    if facts is None or facts.early is None:
        return engine, []
    early, words = facts.early, "\0".join(("", *command[1:]))
    set_up = [os.environ.get(name) or Path(name).exists() for name in early.profiles]
    if any(set_up) or re.search(early.remote, words):
        return engine, []
    usual = facts.reads_unnamed if early.dry_run else ()
    files = [path for word in (*usual, *command[1:]) if (path := Path(word)).is_file()]
    if early.side_effects and any(_may_contain(path, early.side_effects) for path in files):
        return engine, []
    return engine, files


def _may_contain(path: Path, pattern: bytes) -> bool:
    """Whether the text of the file matches; a large file is not read and counts as a match."""
    return path.stat().st_size >= _MAX_READ or re.search(pattern, path.read_bytes()) is not None


def _read_graph(engine: str, command: tuple[str, ...], files: Sequence[Path]) -> Bundle | None:
    """Return the graph, from one of the files or as printed by the engine's dry run. Raises
    InputError."""
    from tracehint.adapters.engines.graphs import declared_bundle, is_of
    from tracehint.adapters.engines.registry import ENGINES

    early = ENGINES[engine].early
    if early is None or not early.dry_run:
        workflow = next((path for path in reversed(files) if is_of(engine, path)), None)
        return declared_bundle(workflow, engine) if workflow is not None else None
    with tempfile.TemporaryDirectory(prefix="tracehint-graph-") as folder:
        text = Path(folder, "graph")
        printed = _print_graph([*command, *early.dry_run], text)
        return declared_bundle(text, engine, Path.cwd()) if printed else None


def _print_graph(words: Sequence[str], to: Path) -> bool:
    """Run the dry run and return whether it succeeded; after DRY_RUN_S kill its process group."""
    with to.open("wb") as out:
        try:
            engine = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError:
            return False  # the run will report it
    try:
        return engine.wait(DRY_RUN_S) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if engine.poll() is None:
            os.killpg(engine.pid, signal.SIGKILL)
            engine.wait()


def _plan_local_writes(analysis: Analysis, given: str, hosts: int) -> Plan | None:
    """Return the plan of local writes if it beats the default for every file size, else None. Its
    predicted times are those of the last size."""
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
