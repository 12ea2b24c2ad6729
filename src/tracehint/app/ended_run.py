"""Add an ended run to the state of its workflow, and summarise its result in text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.adapters.place.dispatch import Dispatcher
    from tracehint.adapters.place.submissions import Submissions
    from tracehint.adapters.project.state import KnownRun, ProjectState
    from tracehint.app.run_loop import Learned
    from tracehint.collectors.run import Ended
    from tracehint.schemas.store import Bundle


def add_recorded_run(
    directory: Path,
    bundle: Path,
    command: tuple[str, ...],
    found: Learned | None,
    placed: Dispatcher | Submissions | None,
    store: str,
    created: int,
    began: float,
) -> list[str]:
    """Add the run to the state; return lines on its result. `began`: start (time.monotonic) of
    tracehint; `created`: files below the data roots; `placed`: dispatcher of tasks or jobs."""
    from tracehint.adapters.project.state import UNKNOWN_STATUS, KnownRun, add_run
    from tracehint.hintgen.compare.proof import force_of
    from tracehint.schemas.commandline.programs import workflow_name
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.store import read_bundle

    manifest = read_manifest(bundle)
    recorded = read_bundle(bundle, without=("extents", "metadata_ops"))
    force = force_of(recorded)
    hinted = found is not None and found.hinted
    tasks = _tasks(recorded)
    ran = max(tasks, placed.seen if placed is not None else 0)
    usual = found.tasks if found is not None else 0
    idle = not (force.wanted or ran)
    seconds = ((manifest.ended_ns or 0) - manifest.started_ns) / 1e9
    spent = time.monotonic() - began - seconds + (found.spent if found is not None else 0.0)
    run = KnownRun(
        number=int(bundle.name.partition(".")[0]),
        command=(workflow_name(command),) if manifest.no_args else command,
        status=UNKNOWN_STATUS if manifest.exit_status is None else manifest.exit_status,
        seconds=round(seconds, 3),
        around=round(max(spent, 0.0), 3),
        hinted=hinted,
        store=store if hinted or (found is not None and found.first) else "",
        in_force=force.in_force,
        wanted=force.wanted,
        hints_digest=found.hints_digest if found is not None else "",
        files_created=created,
        left_out=found.left_out if found is not None else (),
        idle=idle,
        placed=placed is not None,
        unrecognised=placed is not None and placed.unrecognised and ran > usual / 2,
        tasks=usual if placed is not None else tasks,
        collector=manifest.collector,
    )
    state = add_run(directory, run)
    if run.status == UNKNOWN_STATUS:
        return ["exit status unknown: nothing is learned from this run"]
    if run.status:
        return [f"exit status {run.status}: nothing is learned from this run"]
    if idle:
        return ["no task ran (all outputs up to date?): nothing is learned from this run"]
    if not hinted and found is not None and (found.hints is None or state.slower(command)):
        return []  # a baseline run, or the next run repeats it
    if not hinted:
        return ["hints learned from this run: the next run applies them (tracehint status)"]
    again = ["most of its tasks are not in the recorded run: the next run is recorded again"]
    return [*_against_first(state, run, directory), *(again if run.unrecognised else [])]


def add_unrecorded_run(
    directory: Path,
    place: Path,
    command: tuple[str, ...],
    found: Learned,
    ended: Ended,
    store: str,
    created: int,
    seconds: float,
    began: float,
) -> None:
    """Add a run that was not recorded to the state; `place`: path reserved for a recording."""
    from tracehint.adapters.project.state import KnownRun, add_run

    run = KnownRun(
        number=int(place.name.partition(".")[0]),
        command=command,
        status=ended.status,
        seconds=round(seconds, 3),
        around=round(time.monotonic() - began - seconds, 3),
        hinted=found.hinted,
        store=store if found.hinted or found.first else "",
        hints_digest=found.hints_digest,
        files_created=created,
        left_out=found.left_out,
        tasks=found.tasks,
        recorded=False,
    )
    add_run(directory, run)


def _tasks(bundle: Bundle) -> int:
    """Return the number of tasks with recorded processes, without the engine itself."""
    import pyarrow.compute as pc

    from tracehint.analyzer.tasks.segmentation import segment_tasks

    tasks = segment_tasks(bundle).tasks
    seen = pc.greater(tasks.column("processes"), 0)
    return pc.sum(pc.and_(seen, pc.invert(tasks.column("engine")))).as_py() or 0


def _against_first(state: ProjectState, run: KnownRun, directory: Path) -> list[str]:
    """Return lines that compare the run's seconds with those of the last run without hints."""
    from tracehint.adapters.project.discover import LOCAL, store_of
    from tracehint.collectors.hostinfo import mounts

    plain = [r for r in state.runs if r.program == run.program and not r.hinted and r.teaches]
    if not plain:
        return []
    first = plain[-1]
    how = "in the first run" if first.store else "without hints"
    how += " (recorded on all nodes)" if run.placed and first.recorded else ""
    lines = [f"{first.seconds:.1f} s {how}, {run.seconds:.1f} s with hints"]
    if run.store == "xattr" and store_of(directory, mounts())[0] == LOCAL:
        lines.append("  not an effect of the hints: a local file system only stores them")
    if state.bundle(first).is_dir():
        lines.append(f"  next: tracehint compare {state.bundle(first)} {state.bundle(run)}")
    return lines
