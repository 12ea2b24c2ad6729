"""`tracehint run`: a workflow as it is, its files hinted as they are made."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.hinted_run import Hinted, Wanted, prepared
from tracehint.collectors.preload.library import bearable_environment
from tracehint.collectors.run import (
    Ended,
    die_like,
    find_command,
    report_failures,
    working_directory,
)
from tracehint.commands._options import with_options
from tracehint.commands._recording import (
    RecordError,
    Recording,
    RunCommand,
    recording_options,
    run_plain,
    start,
)
from tracehint.commands._stores import like_option, store_options
from tracehint.errors import TracehintError
from tracehint.schemas.commandline.programs import workflow_name

if TYPE_CHECKING:
    from tracehint.adapters.place.dispatch import Dispatcher
    from tracehint.adapters.place.hosts import Host
    from tracehint.adapters.place.submissions import Submissions
    from tracehint.adapters.project.state import ProjectState
    from tracehint.app.run_loop import JobPlacing, Learned, TaskPlacing

_options = with_options(
    click.option(
        "--hints",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="HINTS",
        help="Hint file of `hints` or `plan`. Default: rules learned from previous runs in this "
        "directory.",
    ),
    store_options(required=False),
    like_option,
    click.option(
        "--nodes",
        type=click.IntRange(1, 1_000_000),
        help="Nodes of this run; copies of a file never exceed them.",
    ),
    click.option(
        "--cluster",
        metavar="FILE",
        type=click.UNPROCESSED,
        help="Cluster that hints are planned for (as in `plan`).",
    ),
    click.option("--no-record", is_flag=True, help="Set hints only; record nothing."),
)


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@_options
@recording_options
def command(
    hints: Path | None,
    store: str | None,
    prefix: str | None,
    places: Path | None,
    like: Path | None,
    nodes: int | None,
    cluster: str | None,
    no_record: bool,
    **options: Any,
) -> int:
    """Run COMMAND unchanged; each matching file gets its hint at creation, before its first
    byte.

    Without --hints the first run in a directory is recorded; the next ones have hints learned
    from it and refine them. They are stored in .tracehint/; `tracehint status` shows them.

    The command's output, exit code and signals pass through; a store's error never
    reaches it. A summary of hints set and rejected is printed at the end and stored in
    the trace bundle. 125, 126, 127: as `record`.

    Example: tracehint run -- makeflow montage.mf

    Example: tracehint run --hints hints.json --store moosefs -- snakemake -c4
    """
    began = time.monotonic()
    plain = Wanted(hints, "", prefix, places, like, nodes, options["data_roots"])
    try:
        hosts = _hosts(working_directory()) if hints is None else ()
        batch = _batch() if hints is None and not hosts else ()
        with _with_store(plain, store, hosts or batch, options) as wanted:
            if hints is not None:
                ended = _run_once(wanted, no_record, options)
            else:
                ended = _learn_more(wanted, cluster, (hosts, batch), began, no_record, options)
    except TracehintError as error:
        if error.exit_code in (126, 127):
            raise
        raise RecordError(error.what, error.remedy) from None
    return die_like(ended)


def _hosts(directory: Path) -> tuple[Host, ...]:
    """Return the nodes for tasks: those of this allocation, or of the project's host file."""
    from tracehint.adapters.place.allocation import allocated_hosts, named_hosts
    from tracehint.adapters.project.config import find_config

    found = allocated_hosts()
    config = find_config(directory) if not found else None
    path = config.values.get("hosts") if config is not None else None
    return named_hosts(Path(path)) if path else found


def _batch() -> tuple[Host, ...]:
    """Return the nodes for jobs that are submitted from here."""
    from tracehint.adapters.place.submissions import batch_nodes

    return batch_nodes()


def _keeps_files_near(wanted: Wanted) -> bool:
    """Whether the store can keep a file on a given node; some need a map of classes or pools."""
    from tracehint.adapters.project.discover import NODE_PLACES

    return wanted.store not in NODE_PLACES or wanted.places is not None


@contextmanager
def _submit_jobs(placing: JobPlacing, *, quiet: bool) -> Iterator[Submissions | None]:
    """Submit the command's jobs for these nodes during the block; if that is not possible, print
    the reason."""
    from tracehint.adapters.place.submissions import submitting

    with ExitStack() as stack:
        jobs = None
        try:
            jobs = stack.enter_context(submitting(placing.nodes, placing.jobs, steal=placing.steal))
        except OSError as error:
            click.echo(f"tracehint: jobs run on any node: {error}", err=True)
        yield jobs
    if jobs is not None and str(jobs) and not quiet:
        click.echo(f"tracehint: jobs: {jobs}", err=True)
    if jobs is not None and jobs.problem:
        click.echo(f"tracehint: {jobs.problem}", err=True)


@contextmanager
def _place_tasks(placing: TaskPlacing, directory: Path) -> Iterator[Dispatcher | None]:
    """Start the command's tasks on these nodes during the block; print a failure to do so."""
    from tracehint.adapters.place.dispatch import dispatching
    from tracehint.adapters.project.state import own_folder

    with ExitStack() as stack:
        place = None
        try:
            folder = own_folder(directory)
            place = stack.enter_context(
                dispatching(placing.nodes, placing.tasks, folder, steal=placing.steal)
            )
        except (OSError, TracehintError) as error:
            click.echo(f"tracehint: tasks run where the engine starts them: {error}", err=True)
        yield place


@contextmanager
def _with_store(
    wanted: Wanted, store: str | None, hosts: tuple[Host, ...], options: dict[str, Any]
) -> Iterator[Wanted]:
    """Select the store that was named, or the one that the data's directory is on."""
    from tracehint.adapters.project.discover import store_here

    if store is not None:
        yield replace(wanted, store=store)
        return
    place = Path((options["data_roots"] or (str(working_directory()),))[0])
    with store_here(place, [host.name for host in hosts]) as here:
        if here.why and not options["quiet"]:
            click.echo(f"tracehint: store {here.store}: {here.why}", err=True)
        yield replace(wanted, store=here.store, places=wanted.places or here.places)


def _run_once(wanted: Wanted, no_record: bool, options: dict[str, Any]) -> Ended:
    """Run with these hints, regardless of earlier runs."""
    with prepared(wanted) as hinted:
        ended, bundle = _run_command(hinted, wanted, no_record, options)
        hinted.tell(bundle, options["host_id"], quiet=options["quiet"])
    return ended


def _learn_more(
    wanted: Wanted,
    cluster: str | None,
    nodes: tuple[tuple[Host, ...], tuple[Host, ...]],
    began: float,
    no_record: bool,
    options: dict[str, Any],
) -> Ended:
    """Run with rules learned from the runs here, and add this run to them. `nodes`: those for
    tasks, and those for jobs; `began`: start time of tracehint (time.monotonic)."""
    from tracehint.adapters.project.discover import CLUSTERS
    from tracehint.adapters.project.state import claim
    from tracehint.app.run_loop import learn_hints, prepare_next
    from tracehint.beside import run_in_background

    here, quiet, command = working_directory(), options["quiet"], options["command"]
    at_once = cluster is not None  # with a named cluster, this run has the plan
    cluster = cluster or CLUSTERS.get(wanted.store)  # built-in model, if none was named
    kept = not (no_record or options["output"])
    with report_failures("The recordings are kept."):
        _join_late(here, quiet=quiet)
    # "." stays the same directory even if its path is changed meanwhile
    state, place = claim(Path()) if kept else (_readable_state(), None)
    if state.problem:
        click.echo(f"tracehint: this run has no hints: {state.problem}", err=True)
    batch = nodes[1] if _keeps_files_near(wanted) else ()
    learn = partial(learn_hints, hosts=nodes[0], batch=batch)
    with ExitStack() as stack:
        stack.callback(_remove_if_empty, place)
        choose = partial(learn, at_once=at_once or not kept)
        found = _learn_rules(choose, state, command, cluster, quiet=quiet)
        recorded = found is None or found.recorded or not kept
        if found is not None and found.beside:
            later = partial(learn, state, command, cluster, measured=found.measured)
            stack.enter_context(run_in_background(later))
        hinted = None
        placed: Dispatcher | Submissions | None = None
        if found is not None and found.placing is not None:
            placed = stack.enter_context(_place_tasks(found.placing, here))
        if found is not None and found.submitting is not None:
            placed = stack.enter_context(_submit_jobs(found.submitting, quiet=quiet))
        if found is not None and found.hints is not None:
            roots = wanted.roots or found.roots
            wanted = replace(wanted, learned=(found.hints, found.paths), roots=roots)
            hinted = stack.enter_context(prepared(wanted))
        given = options if place is None else {**options, "output": place}
        jobs = placed is None  # jobs are recorded unless they are placed
        more = placed.environment if placed is not None else {}
        start, silent = time.monotonic(), no_record or not recorded
        ended, bundle = _run_command(hinted, wanted, silent, given, more, jobs=jobs)
        seconds = time.monotonic() - start
        created = hinted.tell(bundle, options["host_id"], quiet=quiet) if hinted is not None else 0
    if found is not None and place is not None and not recorded:
        _add_unrecorded_run(place, found, ended, (wanted.store, created, seconds, began), options)
    if bundle is not None and kept:
        with report_failures(f"The recording is intact: {bundle}"):
            _add_recorded_run(bundle, found, placed, (wanted.store, created, began), options)
            prepare_next(Path(), command, cluster, nodes[0], batch)
    return ended


def _join_late(directory: Path, *, quiet: bool) -> None:
    """Join recordings of jobs that ended after their run, if there are any."""
    from tracehint.adapters.project.state import jobs_folders

    if jobs_folders(directory):
        from tracehint.app.jobs import join_late

        join_late(directory, quiet=quiet)


def _add_unrecorded_run(
    place: Path,
    found: Learned,
    ended: Ended,
    about: tuple[str, int, float, float],
    options: dict[str, Any],
) -> None:
    """Add a run that was not recorded to the state. `about`: the store, files created,
    seconds of the command, and start time of tracehint."""
    from tracehint.app.ended_run import add_unrecorded_run

    command = options["command"]
    words = (workflow_name(command),) if options["no_args"] else command
    with report_failures("The command has ended."):
        add_unrecorded_run(Path(), place, words, found, ended, *about)


def _add_recorded_run(
    bundle: Path,
    found: Learned | None,
    placed: Dispatcher | Submissions | None,
    about: tuple[str, int, float],
    options: dict[str, Any],
) -> None:
    """Add a recorded run to the state. `about`: the store, files created, and start time of
    tracehint."""
    from tracehint.app.ended_run import add_recorded_run

    for line in add_recorded_run(Path(), bundle, options["command"], found, placed, *about):
        if not options["quiet"]:
            click.echo(f"tracehint: {line}", err=True)


def _readable_state() -> ProjectState:
    """Return the state of the workflow here; an unreadable one has no runs."""
    from tracehint.adapters.project.state import ProjectState, read_state

    try:
        return read_state(Path())
    except TracehintError as error:
        return ProjectState(Path(), problem=error.what)


def _remove_if_empty(place: Path | None) -> None:
    """Remove the empty directory of a run that was not recorded."""
    with suppress(OSError):
        if place is not None:
            place.rmdir()


def _learn_rules(
    learn: Any, state: Any, command: tuple[str, ...], cluster: str | None, *, quiet: bool
) -> Learned | None:
    """Return rules learned from the runs; None, with a message, if a run cannot be read."""
    try:
        found: Learned | None = learn(state, command, cluster)
    except TracehintError as error:
        click.echo(f"tracehint: this run has no hints: {error}", err=True)
        return None
    for line in found.notes if found is not None and not quiet else ():
        click.echo(f"tracehint: {line}", err=True)
    return found


def _run_command(
    hinted: Hinted | None,
    wanted: Wanted,
    no_record: bool,
    options: dict[str, Any],
    more: Mapping[str, str] = {},
    *,
    jobs: bool = True,
) -> tuple[Ended, Path | None]:
    """Run the command. `more`: environment variables; `jobs`: record jobs of a batch system."""
    environment = {**(hinted.environment if hinted is not None else {}), **more}
    program = find_command(options["command"][0])
    if no_record:
        environment = bearable_environment(program, environment)
        return run_plain(options["command"], environment), None
    from tracehint.app.jobs import Jobs, jobs_recorded
    from tracehint.app.locations import locator, note_locations, project_locator
    from tracehint.app.workflow_graph import join_engine_logs

    store = locator(wanted.store, wanted.prefix, wanted.places) or project_locator()
    recorded = jobs_recorded(working_directory()) if jobs else nullcontext(Jobs())
    with recorded as found:
        environment = bearable_environment(program, {**found.environment, **environment})
        result, bundle = start(Recording(**options, environment=environment, locate=False))
        if bundle is not None:
            with report_failures(f"The recording is intact: {bundle}"):
                found.join(bundle, quiet=options["quiet"])
    if bundle is not None:  # after the join, to include files of jobs
        roots, host, quiet = options["data_roots"], options["host_id"], options["quiet"]
        note_locations(bundle, store, roots, host, quiet=quiet)
        with report_failures(f"The recording is intact: {bundle}"):
            join_engine_logs(bundle)
    if bundle is not None and not options["quiet"]:
        click.echo(f"tracehint: wrote {click.format_filename(bundle)}", err=True)
    return Ended(result.exit_status, result.signal), bundle
