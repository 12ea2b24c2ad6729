"""`tracehint run`: a workflow as it is, its files hinted as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.collectors.run import Ended, die_like, told, working_directory
from tracehint.commands._engine_logs import join_engine_logs
from tracehint.commands._hinted import Hinted, Wanted, prepared
from tracehint.commands._jobs import jobs_recorded
from tracehint.commands._located import locator, note_locations, project_locator
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

if TYPE_CHECKING:
    from tracehint.commands._loop import Learned

_options = with_options(
    click.option(
        "--hints",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="HINTS",
        help="Hint file of `hints` or `plan`. Default: what the last runs here taught.",
    ),
    store_options(required=False),
    like_option,
    click.option(
        "--nodes",
        type=click.IntRange(1, 1_000_000),
        help="Nodes of this run; copies of a file never exceed them.",
    ),
    click.option(
        "--cluster", metavar="FILE", help="Cluster that hints are planned for (as of `plan`)."
    ),
    click.option(
        "--via",
        metavar="WAY",
        help="How hints are set: preload, or fanotify (root). Default: the first that can be; "
        "`tracehint doctor` tells.",
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
    via: str | None,
    no_record: bool,
    **options: Any,
) -> int:
    """Run COMMAND unchanged; each file that a hint is for gets it as it is made, before its
    first byte.

    Without --hints the workflow is learned: the first run in a directory is recorded, the next
    ones have hints from it and refine them. `tracehint status` tells what is known; it lies in
    .tracehint/.

    The command's output, exit code and signals pass through; a store's error never
    reaches it. What was set, and what the store refused, is told at the end and
    stands in the trace bundle. 125, 126, 127: as `record`.

    Example: tracehint run -- makeflow montage.mf

    Example: tracehint run --hints hints.json --store moosefs -- snakemake -c4
    """
    plain = Wanted(hints, "", prefix, places, like, nodes, options["data_roots"], via=via)
    try:
        with _with_store(plain, store, options) as wanted:
            if hints is not None:
                ended = _once(wanted, no_record, options)
            else:
                ended = _again(wanted, cluster, no_record, options)
    except TracehintError as error:
        if error.exit_code in (126, 127):
            raise
        raise RecordError(error.what, error.remedy) from None
    return die_like(ended)


@contextmanager
def _with_store(wanted: Wanted, store: str | None, options: dict[str, Any]) -> Iterator[Wanted]:
    """The store that was named, or the one that the data's directory is on."""
    from tracehint.adapters.project.here import store_here

    if store is not None:
        yield replace(wanted, store=store)
        return
    with store_here(Path((options["data_roots"] or (str(working_directory()),))[0])) as here:
        if here.why and not options["quiet"]:
            click.echo(f"tracehint: store {here.store}: {here.why}", err=True)
        yield replace(wanted, store=here.store, places=wanted.places or here.places)


def _once(wanted: Wanted, no_record: bool, options: dict[str, Any]) -> Ended:
    """With these hints, whatever was before."""
    with prepared(wanted) as hinted:
        ended, bundle = _run(hinted, wanted, no_record, options)
        hinted.tell(bundle, options["host_id"], quiet=options["quiet"])
    return ended


def _again(wanted: Wanted, cluster: str | None, no_record: bool, options: dict[str, Any]) -> Ended:
    """With what the runs here taught; this run is added to them."""
    from tracehint.adapters.project.mounts import CLUSTERS
    from tracehint.adapters.project.state import claim, read_state
    from tracehint.commands._loop import learned, written_down

    here, quiet, command = working_directory(), options["quiet"], options["command"]
    cluster = cluster or CLUSTERS.get(wanted.store)  # ready-made, where none was named
    found = _learned(learned, read_state(here), command, cluster, quiet=quiet)
    with ExitStack() as stack:
        hinted = None
        if found is not None:
            roots = wanted.roots or found.roots
            wanted = replace(wanted, learned=(found.hints, found.paths), roots=roots)
            hinted = stack.enter_context(prepared(wanted))
        if no_record or options["output"]:
            ended, bundle = _run(hinted, wanted, no_record, options)
            if hinted is not None:
                hinted.tell(bundle, options["host_id"], quiet=quiet)
            return ended
        _, place = claim(here)
        try:
            ended, bundle = _run(hinted, wanted, no_record, {**options, "output": str(place)})
        finally:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()  # nothing was recorded
        if hinted is not None:
            hinted.tell(bundle, options["host_id"], quiet=quiet)
    if bundle is not None:
        with told(f"The recording is whole: {bundle}"):
            for line in written_down(here, bundle, command, found, wanted.store):
                if not quiet:
                    click.echo(f"tracehint: {line}", err=True)
    return ended


def _learned(
    learn: Any, state: Any, command: tuple[str, ...], cluster: str | None, *, quiet: bool
) -> Learned | None:
    """What the runs taught; a run that cannot be read is said, and then there are no hints."""
    try:
        found: Learned | None = learn(state, command, cluster)
    except TracehintError as error:
        click.echo(f"tracehint: this run has no hints: {error}", err=True)
        return None
    for line in found.said if found is not None and not quiet else ():
        click.echo(f"tracehint: {line}", err=True)
    return found


def _run(
    hinted: Hinted | None, wanted: Wanted, no_record: bool, options: dict[str, Any]
) -> tuple[Ended, Path | None]:
    environment = hinted.environment if hinted is not None else {}
    if no_record:
        return run_plain(options["command"], environment), None
    store = locator(wanted.store, wanted.prefix, wanted.places) or project_locator()
    with jobs_recorded(working_directory()) as jobs:
        environment = {**jobs.environment, **environment}
        result, bundle = start(Recording(**options, environment=environment, locate=False))
        if bundle is not None:
            with told(f"The recording is whole: {bundle}"):
                jobs.join(bundle, quiet=options["quiet"])
    if bundle is not None:  # of the jobs' files as well
        roots, host, quiet = options["data_roots"], options["host_id"], options["quiet"]
        note_locations(bundle, store, roots, host, quiet=quiet)
        with told(f"The recording is whole: {bundle}"):
            join_engine_logs(bundle)
    if bundle is not None and not options["quiet"]:
        click.echo(f"tracehint: wrote {click.format_filename(bundle)}", err=True)
    return Ended(result.exit_status, result.signal), bundle
