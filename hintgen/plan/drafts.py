"""The placement strategies of a plan, each a function that returns drafts, and their table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, Shorts
from tracehint.analyzer.predict import model
from tracehint.analyzer.predict.model import Placement, law, place_inputs_apart
from tracehint.hintgen.placed import MAX_COPIES, placement_of
from tracehint.hintgen.plan.graph import Graph, find_gatherers
from tracehint.hintgen.plan.model import FREE, Draft, Problem, Strategy
from tracehint.hintgen.plan.partition import UnavailableError
from tracehint.hintgen.plan.site_cut import cuts_by_site

# Building blocks of drafts. A part is the set of tasks and files that one node runs and stores.


def blank(problem: Problem, name: str, scheduler: str | None = None) -> Placement:
    """Return a placement without a hint for any file."""
    count = problem.work.files
    return Placement(
        name,
        law=np.full(count, -1, np.int32),
        copies=np.zeros(count, np.int32),
        target=np.full(count, -1, np.int32),
        scheduler=scheduler,
    )


def finish_placement(problem: Problem, placement: Placement) -> Placement:
    """Adapt a placement to the cluster: node-local disks need a separate machine for the inputs."""
    return place_inputs_apart(placement, problem.work, problem.cluster)


def unplace_tasks(problem: Problem, placement: Placement) -> Placement:
    """Remove task placement: tasks start on the engine's node or where the scheduler decides."""
    if problem.own is None:
        return replace(placement, scheduler=None)
    plan = np.zeros(problem.work.tasks, np.int32)
    return replace(placement, scheduler="plan", plan=plan, steal="nothing")


def pin_tasks(problem: Problem, name: str, part: Ints, parts: int, steal: str) -> Draft:
    """Return a draft with each task in its part and each written file in its writer's part.

    A FREE task starts where most of its input is stored; its files stay on the node that writes
    them. `steal`: which tasks of other parts an idle node may run (analyzer/predict/model.py).
    """
    found = blank(problem, name, "plan")
    assert found.law is not None and found.target is not None
    made = problem.graph.writer >= 0
    home = np.where(made, part[problem.graph.writer], FREE)
    found.law[made] = law("local")
    found.law[home >= 0] = law("node")
    found.target[home >= 0] = home[home >= 0]
    found.plan = part.astype(np.int32)
    found.steal = steal
    return Draft(name, finish_placement(problem, found), parts, part.astype(np.int32))


def move_files(draft: Draft, files: Ints, target: Ints | Shorts) -> Draft:
    """Return a copy with `files` placed in the parts `target`."""
    old = draft.placement
    assert old.law is not None and old.target is not None
    kinds, to = old.law.copy(), old.target.copy()
    kinds[files], to[files] = law("node"), target
    return with_placement(draft, law=kinds, target=to)


def with_placement(draft: Draft, **arrays: object) -> Draft:
    """Return a copy with some fields of the placement replaced."""
    return replace(draft, placement=replace(draft.placement, **arrays))  # type: ignore[arg-type]


def with_inputs(problem: Problem, draft: Draft) -> Draft:
    """Place each input staged for this run in the part that reads most bytes of it."""
    if not problem.staged or draft.part is None:
        return draft
    reads = problem.graph.reads.take(problem.graph.writer[problem.graph.reads.file] < 0)
    reads = reads.take(draft.part[reads.task] != FREE)
    key = reads.file * draft.parts + draft.part[reads.task]
    keys, at = np.unique(key, return_inverse=True)
    weight = np.bincount(at, reads.bytes, len(keys))
    order = np.lexsort((weight, keys // draft.parts))
    home = np.full(problem.work.files, -1, np.int64)
    home[keys[order] // draft.parts] = keys[order] % draft.parts
    files = np.flatnonzero(home >= 0)
    return move_files(draft, files, home[files])


# The store's default placement; the cluster's scheduler starts the tasks.


def default_placement(problem: Problem) -> list[Draft]:
    """Return one draft that places no file."""
    return [
        Draft(
            "default", unplace_tasks(problem, finish_placement(problem, blank(problem, "default")))
        )
    ]


# Each file on the node that writes it.


def local_first(problem: Problem) -> list[Draft]:
    """Return one draft: each file on its writer's node, each task where most of its input is."""
    return [Draft("local-first", model.local(problem.work, problem.cluster))]


def local_writes(problem: Problem) -> list[Draft]:
    """Return one draft: each file on its writer's node, tasks where the engine starts them."""
    found = model.local(problem.work, problem.cluster)
    return [Draft("local-writes", unplace_tasks(problem, found))]


# Local writes, except that the files gathered by one task are written directly to one node.


def local_reduce(problem: Problem) -> list[Draft]:
    """Return one draft, or none if no task gathers files."""
    reader = find_gatherers(problem.graph)
    if not (reader >= 0).any():
        return []
    found = blank(problem, "local-reduce", "most-input-bytes")
    assert found.law is not None and found.target is not None
    groups, number = np.unique(reader[reader >= 0], return_inverse=True)
    found.law[problem.graph.writer >= 0] = law("local")
    found.law[reader >= 0] = law("group")
    found.target[reader >= 0] = number
    found.groups = len(groups)
    return [Draft("local-reduce", finish_placement(problem, found))]


# Local-first with manual-style refinements: files that a task reads together are co-located, and
# inputs with many readers are replicated.

_TOGETHER = "local-together"
WIDELY = 5  # minimum number of readers of a replicated input
COPIES = (2, 4)


def local_together(problem: Problem) -> list[Draft]:
    """Return drafts that co-locate all files read together, only those with several readers, or
    none; each without and, if the inputs can be hinted, with replicas of the inputs."""
    graph = problem.graph
    reader = _last_reader(graph)
    written = graph.writer >= 0
    joined = written & (reader >= 0) & (_written_inputs(graph, written)[reader] >= 2)
    wide = (graph.writer < 0) & (graph.readers >= WIDELY) & problem.staged
    found = []
    for together in (joined, joined & (graph.readers > 1), np.zeros(graph.files, bool)):
        draft = _together_draft(problem, written, together, reader)
        found += [draft] if together.any() else []
        for count in COPIES if wide.any() else ():
            copies = np.where(wide, min(count, problem.cluster.count), 0).astype(np.int32)
            found.append(with_placement(draft, copies=copies))
    return found


def _last_reader(graph: Graph) -> Ints:
    """Return the last reader of each file; -1: no reader."""
    found = np.full(graph.files, -1, np.int64)
    np.maximum.at(found, graph.reads.file, graph.reads.task)
    return found


def _written_inputs(graph: Graph, written: Bools) -> Ints:
    """Return the number of written files that each task reads."""
    pairs = np.unique(np.stack([graph.reads.task, graph.reads.file]), axis=1)
    return np.bincount(pairs[0][written[pairs[1]]], minlength=graph.tasks)


def _together_draft(problem: Problem, written: Bools, together: Bools, reader: Ints) -> Draft:
    found = blank(problem, _TOGETHER, "most-input-bytes")
    assert found.law is not None and found.target is not None
    groups, number = np.unique(reader[together], return_inverse=True)
    found.law[written] = law("local")
    found.law[together] = law("group")
    found.target[together] = number
    return Draft(_TOGETHER, finish_placement(problem, replace(found, groups=len(groups))))


# Hints learned file by file, as `tracehint hints` writes them.

MAX_FILES = 50_000  # matching rules takes about 1 s for this many files, 10 s with many rules


def per_file(problem: Problem) -> list[Draft]:
    """Return one draft with the learned hints; tasks start where most of their input is stored."""
    values = _hint_values(problem)
    if not any(values):
        return []
    found = placement_of(values, problem.work, "per-file")
    return [Draft("per-file", finish_placement(problem, found), values=values)]


def per_file_only(problem: Problem) -> list[Draft]:
    """Return one draft with the learned hints; tasks start where the engine starts them."""
    return [
        replace(draft, name="per-file-only", placement=unplace_tasks(problem, draft.placement))
        for draft in per_file(problem)
    ]


def _hint_values(problem: Problem) -> list[dict[str, str]]:
    """Return the hints of each file, empty where it cannot be hinted. Raises UnavailableError."""
    work = problem.work
    if problem.rules is None or not problem.rules.rules:
        return []
    if work.files > MAX_FILES:
        raise UnavailableError(f"hints of single files are matched for up to {MAX_FILES:,} files")
    values = problem.hinted
    if problem.staged:
        return values
    return [v if made else {} for v, made in zip(values, work.produced, strict=True)]


# The published table of placements by access pattern.
#
# Pipeline: on the writer's node. Reduce: together on one node. Broadcast: one copy per three
# readers, at most one per node. All other files: the store's default.

READERS_A_COPY = 3


def published_table(problem: Problem) -> list[Draft]:
    """Return one draft by access pattern; tasks start where most of their input is stored."""
    graph = problem.graph
    found = blank(problem, "paper", "most-input-bytes")
    assert found.law is not None and found.copies is not None and found.target is not None
    made = graph.writer >= 0
    single = made & (graph.readers == 1)
    reader = find_gatherers(graph)
    groups, number = np.unique(reader[reader >= 0], return_inverse=True)
    found.law[single] = law("local")
    found.law[reader >= 0] = law("group")
    found.target[reader >= 0] = number
    shared = (graph.readers > 1) & (made | problem.staged)
    found.copies[shared] = _copies(graph.readers[shared], problem.cluster.count)
    found.groups = len(groups)
    return [Draft("paper", finish_placement(problem, found))]


def _copies(readers: Ints, nodes: int) -> Ints:
    wanted = np.maximum(2, -(-readers // READERS_A_COPY))
    return np.minimum(wanted, min(nodes, MAX_COPIES))


# Parts that exchange few bytes, and variants of the resulting drafts.


def partition_cuts(problem: Problem) -> list[Draft]:
    """Return drafts of several cuts; each file is placed in its writer's part."""
    return [
        bind_to_parts(problem, "partition", cut, steal)
        for cut in problem.cuts
        for steal in ("any", "unplanned")
    ]


def bind_to_parts(problem: Problem, name: str, cut: Ints, steal: str) -> Draft:
    """Return a draft with tasks in their parts, files with their writers, inputs with readers."""
    return with_inputs(problem, pin_tasks(problem, name, cut, problem.cluster.count, steal))


def partition_early(problem: Problem) -> list[Draft]:
    """Return partition drafts whose gathered files are written directly to their reader's part."""
    found = []
    reader = find_gatherers(problem.graph)
    if not (reader >= 0).any():
        return []
    for draft in partition_cuts(problem):
        assert draft.part is not None
        files = np.flatnonzero(reader >= 0)
        found.append(
            replace(move_files(draft, files, draft.part[reader[files]]), name="partition-early")
        )
    return found


def partition_copies(problem: Problem) -> list[Draft]:
    """Return partition drafts that replicate files read by most parts: 2 copies, or 1 per part."""
    found = []
    for draft in partition_cuts(problem)[:4]:
        assert draft.part is not None and draft.placement.copies is not None
        wide = _files_most_parts_read(problem, draft)
        if not wide.any():
            continue
        for count in sorted({2, min(draft.parts, MAX_COPIES)}):
            copies = np.where(wide, count, draft.placement.copies).astype(np.int32)
            found.append(replace(with_placement(draft, copies=copies), name="partition-copies"))
    return found


def _files_most_parts_read(problem: Problem, draft: Draft) -> np.ndarray:
    """Return a mask of the hintable files that more than half of the parts read."""
    assert draft.part is not None
    reads = problem.graph.reads
    pairs = np.unique(np.stack([reads.file, draft.part[reads.task].astype(np.int64)]), axis=1)
    readers = np.bincount(pairs[0], minlength=problem.work.files)
    hintable = (problem.graph.writer >= 0) | problem.staged
    return np.asarray(hintable & (readers > max(1, draft.parts // 2)))


# Runs over several sites: few bytes between sites first, then few between nodes.


def site_parts(problem: Problem) -> list[Draft]:
    """Return drafts of several cuts; bound tasks stay (idle nodes may be remote) or may move."""
    cuts = cuts_by_site(problem.graph, problem.cluster, problem.seed)
    return [
        bind_to_parts(problem, "sites", cut, steal)
        for cut in cuts
        for steal in ("unplanned", "any")
    ]


# The order of the table printed by `tracehint plan`.
STRATEGIES: tuple[Strategy, ...] = (
    Strategy("default", "default placement of the store", default_placement, simple=True),
    Strategy("local-writes", "files on their writer's node", local_writes, simple=True),
    Strategy("local-first", "local-writes plus data-aware scheduling", local_first, simple=True),
    Strategy("local-reduce", "local-first, gathered files together", local_reduce),
    Strategy("local-together", "local-first, what is read together, copies", local_together),
    Strategy("per-file", "hints learned file by file", per_file),
    Strategy("per-file-only", "the same, tasks on any node", per_file_only),
    Strategy("paper", "placement by pattern as in Al-Kiswany et al.", published_table),
    Strategy("partition", "the graph in parts, one per node", partition_cuts),
    Strategy("partition-early", "the same, gathered files at their reader", partition_early),
    Strategy("partition-copies", "partition, copies of what most parts read", partition_copies),
    Strategy("sites", "parts within sites, few bytes between sites", site_parts),
)
DEFAULT = STRATEGIES[0].name
