"""`tracehint merge`: the bundles of several hosts or tasks as one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._bundles import bundles_at, fetched, is_url
from tracehint.commands._options import gathered
from tracehint.commands._stage_line import stage, stages
from tracehint.errors import BundleError, TracehintError
from tracehint.hintgen.text.units import plural
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.analyzer.execution.resources import Tell
    from tracehint.collectors.joined import Joined
    from tracehint.collectors.parts import BundlePart
    from tracehint.schemas.store import Bundle


_READERS = 4  # bundles that are read at one time, at most
_NAMED = 3  # bundles of which the same is told
_REASONS = 20  # reasons that are told for one bundle each
UNFINISHED = "recorder was killed or is still at work; when it has ended, merge again"


@dataclass(frozen=True)
class MergeRequest:
    """What becomes one bundle, and how."""

    bundles: tuple[str, ...]
    output: Path
    force: bool
    keep_clocks: bool
    workflow: Path | None
    quiet: bool


@click.command()
@click.argument("bundles", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", required=True, metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@click.option("--keep-clocks", is_flag=True, help="Do not align clocks of different hosts.")
@click.option(
    "--workflow",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Workflow file or engine log whose declared tasks and files are joined.",
)
@click.option("--quiet", is_flag=True, help="Print errors only.")
@gathered(asked=MergeRequest)
def command(asked: MergeRequest) -> int:
    """Join BUNDLES, one per host or task, into one. A directory stands for all bundles in
    it; either may be a URL (s3://, hdfs://, ...).

    Bundles that cannot be read are listed and left out; the same recording
    given twice is refused. Clocks are moved only
    where a file would be read before it was made; the correction is stated in
    the bundle.

    Example: tracehint merge node*.trace -o run.trace

    Example: tracehint merge traces/ -o run.trace
    """
    from tracehint.collectors.identity import refuse_twice
    from tracehint.commands._workflow import check_workflow, declare
    from tracehint.schemas.writer import BundleWriter, whole_bundle
    from tracehint.schemas.writing import refuse_existing

    skip_pandas()
    if asked.workflow is not None:
        check_workflow(asked.workflow)
    asked = replace(asked, bundles=tuple(bundles_at(asked.bundles)))
    if asked.output.absolute() in {path.absolute() for path in _here(asked.bundles)}:
        raise BundleError(f"{asked.output}: is one of the bundles", "Choose another name with -o.")
    refuse_existing(asked.output, force=asked.force)
    with parts_of(asked.bundles) as (parts, problems):
        refuse_twice(parts)
        with stage("joining"):
            whole, moved = joined(parts, problems, asked)
        with stage("writing"), whole_bundle(asked.output, force=asked.force) as made:
            whole.write(BundleWriter(made, keep_args=whole.manifest.kept_args))
            if asked.workflow is not None:
                declare(made, asked.workflow)
    _say_incomplete(parts, problems)
    if not asked.quiet:
        _say_joined(whole, len(parts), moved, asked.output)
    return 0


def _say_joined(whole: Joined, parts: int, moved: str, output: Path) -> None:
    hosts = plural(len({host.name for host in whole.manifest.hosts}), "host")
    whole_of = f"{plural(parts, 'bundle')} of {hosts} in {output}"
    click.echo(f"tracehint: {whole_of}", err=True)
    if moved:
        click.echo(f"  {moved}", err=True)


@contextmanager
def parts_of(paths: Sequence[str | Path]) -> Iterator[tuple[list[BundlePart], list[str]]]:
    """The bundles that can be read, and why the others cannot. Raises BundleError for none.

    Their rows wait in temporary files until the block ends.
    """
    from tracehint.analyzer.execution.temporary import temporary_folder

    with temporary_folder("tracehint-merge-") as folder:
        with stages() as seen:
            found = _read(paths, folder, seen.tell)
        yield found


def _read(
    paths: Sequence[str | Path], folder: Path, tell: Tell
) -> tuple[list[BundlePart], list[str]]:
    parts, problems = [], []
    remedies: list[str] = []
    for number, (path, part) in enumerate(zip(paths, _each(paths, folder), strict=True)):
        tell("reading", number, len(paths), "bundles")
        if isinstance(part, TracehintError):
            named = Path(path).name in part.what
            problems.append(part.what if named else f"{path}: {part.what}")
            remedies.append(part.remedy)
        else:
            parts.append(part)
    if not parts:
        raise BundleError(
            "no bundle can be read: " + "; ".join(problems), "\n  ".join(dict.fromkeys(remedies))
        )
    return parts, problems


def _each(paths: Sequence[str | Path], folder: Path) -> Iterator[BundlePart | TracehintError]:
    """The bundles in their order, or why one cannot be read; several are read at one time."""
    numbers = range(len(paths))
    with ThreadPoolExecutor(min(_READERS, len(os.sched_getaffinity(0)))) as pool:
        try:
            yield from pool.map(lambda number: _tried(paths[number], folder / str(number)), numbers)
        finally:  # interrupted: what has not begun is not read any more
            pool.shutdown(wait=False, cancel_futures=True)


def _tried(path: str | Path, folder: Path) -> BundlePart | TracehintError:
    from tracehint.collectors.parts import set_aside
    from tracehint.schemas.store import read_bundle

    try:
        bundle = _of_use(read_bundle(fetched(str(path), folder.with_suffix(".copy"))))
    except TracehintError as error:
        return error
    return set_aside(bundle, folder)


def _say_incomplete(parts: Sequence[BundlePart], problems: Sequence[str]) -> None:
    texts = [*problems, *(f"{b.path.name}: {p}" for b in parts for p in b.problems)]
    for text in texts[:_REASONS]:
        click.echo(f"tracehint: left out: {text}", err=True)
    if len(texts) > _REASONS:
        click.echo(f"tracehint: left out: and {len(texts) - _REASONS:,} more", err=True)
    killed = [part.path.name for part in parts if not part.manifest.complete]
    if len(killed) <= _NAMED:
        for name in killed:
            click.echo(f"tracehint: not whole: {name}: its {UNFINISHED}", err=True)
        return
    some = ", ".join(killed[:_NAMED])
    click.echo(
        f"tracehint: not whole: {len(killed):,} of {plural(len(parts), 'bundle')} "
        f"({some} and {len(killed) - _NAMED:,} more): each {UNFINISHED}; "
        "`complete` in its manifest.json tells",
        err=True,
    )


def joined(
    parts: Sequence[BundlePart], problems: Sequence[str], asked: MergeRequest
) -> tuple[Joined, str]:
    """The bundles as one, and how clocks were moved for it; empty: they were not.

    Tasks that no recorder has taken up, and what could not be read, are among its losses.
    """
    import pyarrow as pa

    from tracehint.collectors.ebpf.missed import add_missed, folders_of, missed_in
    from tracehint.collectors.joined import Joined
    from tracehint.schemas.store import losses_table

    whole = Joined(parts)
    manifest, more = whole.manifest, {"losses": whole.losses}
    folders = folders_of(_here(asked.bundles))
    for host in manifest.hosts:
        for path in missed_in(folders, host.name):
            add_missed(more, manifest.notes, host.name, path, keep=True)
    moved = "" if asked.keep_clocks else whole.align()
    manifest.notes += [f"bundle not read: {text}" for text in problems]
    unread = losses_table(manifest, [("unreadable_log", 1, text) for text in problems])
    whole.losses = pa.concat_tables([more["losses"], unread])
    return whole, moved


def _here(bundles: Sequence[str]) -> list[Path]:
    """Those that are directories of this machine."""
    return [Path(where) for where in bundles if not is_url(where)]


def _of_use(bundle: Bundle) -> Bundle:
    """The bundle. Raises BundleError where nothing of it can be read."""
    if bundle.problems and not any(t.num_rows for n, t in bundle.tables.items() if n != "losses"):
        raise BundleError(f"{bundle.path.name}: {bundle.problems[0]}", "Record the run again.")
    return bundle
