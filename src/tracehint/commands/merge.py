"""`tracehint merge`: the bundles of several hosts or tasks as one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.app.merging import MergeRequest, bundles_at, join_bundles, local_bundles, parts_of
from tracehint.commands._options import gather_options, joined_workflow_option
from tracehint.errors import BundleError
from tracehint.progress import stage
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.collectors.join import BundlePart, Joined


_NAMED = 3  # unfinished bundles that are named
_REASONS = 20  # problems of single bundles that are printed
UNFINISHED = "recorder was killed or is still running; when it has ended, merge again"


@click.command()
@click.argument("bundles", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", required=True, metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@click.option("--keep-clocks", is_flag=True, help="Do not align clocks of different hosts.")
@joined_workflow_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
@gather_options(asked=MergeRequest)
def command(asked: MergeRequest) -> int:
    """Join BUNDLES, one per host or task, into one. A directory means all bundles in
    it; either may be a URL (s3://, hdfs://, ...).

    Bundles that cannot be read are listed and left out; the same recording
    given twice is refused. Clocks are moved only
    where a file would be read before it was made; the correction is stated in
    the bundle.

    Example: tracehint merge node*.trace -o run.trace

    Example: tracehint merge traces/ -o run.trace
    """
    from tracehint.app.workflow_graph import check_workflow, declare
    from tracehint.collectors.join import refuse_twice
    from tracehint.schemas.writer import refuse_existing, whole_bundle

    skip_pandas()
    if asked.workflow is not None:
        check_workflow(asked.workflow)
    asked = replace(asked, bundles=tuple(bundles_at(asked.bundles)))
    if asked.output.absolute() in {path.absolute() for path in local_bundles(asked.bundles)}:
        raise BundleError(f"{asked.output}: is one of the bundles", "Choose another name with -o.")
    refuse_existing(asked.output, force=asked.force)
    with parts_of(asked.bundles) as (parts, problems):
        refuse_twice(parts)
        with stage("joining"):
            whole, moved = join_bundles(parts, problems, asked)
        with stage("writing"), whole_bundle(asked.output, force=asked.force) as made:
            whole.write(whole.writer(made))
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


def _say_incomplete(parts: Sequence[BundlePart], problems: Sequence[str]) -> None:
    texts = [*problems, *(f"{b.path.name}: {p}" for b in parts for p in b.problems)]
    for text in texts[:_REASONS]:
        click.echo(f"tracehint: left out: {text}", err=True)
    if len(texts) > _REASONS:
        click.echo(f"tracehint: left out: and {len(texts) - _REASONS:,} more", err=True)
    killed = [part.path.name for part in parts if not part.manifest.complete]
    if len(killed) <= _NAMED:
        for name in killed:
            click.echo(f"tracehint: incomplete: {name}: its {UNFINISHED}", err=True)
        return
    some = ", ".join(killed[:_NAMED])
    click.echo(
        f"tracehint: incomplete: {len(killed):,} of {plural(len(parts), 'bundle')} "
        f"({some} and {len(killed) - _NAMED:,} more): each {UNFINISHED}; "
        "`complete` in its manifest.json shows it",
        err=True,
    )
