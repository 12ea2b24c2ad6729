"""`tracehint merge`: the bundles of several hosts or tasks as one run."""

from __future__ import annotations

from pathlib import Path

import click

from tracehint.errors import BundleError, InputError, TracehintError
from tracehint.schemas.arrow import skip_pandas


@click.command()
@click.argument("bundles", nargs=-1, required=True, type=click.Path(path_type=Path))
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
def command(
    bundles: tuple[Path, ...],
    output: Path,
    force: bool,
    keep_clocks: bool,
    workflow: Path | None,
    quiet: bool,
) -> int:
    """Join BUNDLES, one per host or task, into one.

    Bundles that cannot be read are listed and left out. Clocks are moved only
    where a file would be read before it was made; the correction is stated in
    the bundle.

    Example: tracehint merge node*.trace -o run.trace
    """
    from tracehint.collectors import clocks
    from tracehint.collectors.ebpf.missed import add_missed, missed_beside
    from tracehint.collectors.join import join_manifests, join_tables, one_file_each
    from tracehint.commands._unfinished import read_finished
    from tracehint.commands.import_ import _declare
    from tracehint.schemas.store import BundleWriter

    skip_pandas()
    if workflow is not None and not workflow.exists():
        raise InputError(f"{workflow}: no such file or directory", "Check --workflow.")
    parts, problems = [], []
    for path in bundles:
        if path.absolute() == output.absolute():
            raise BundleError(f"{path}: is the output too", "Choose another name with -o.")
        try:
            parts.append(read_finished(path))
        except TracehintError as error:
            problems.append(str(error.what))
    if not parts:
        raise BundleError(
            "no bundle can be read: " + "; ".join(problems),
            "Give directories that `tracehint record` wrote.",
        )
    parts.sort(key=lambda b: b.manifest.started_ns)
    manifest = join_manifests([b.manifest for b in parts])
    tables = one_file_each(join_tables([b.tables for b in parts]))
    for host in manifest.hosts:  # tasks that no recorder has taken up
        for path in missed_beside(bundles, host.name):
            add_missed(tables, manifest.notes, host.name, path, keep=True)
    shifts = {} if keep_clocks else clocks.corrections(tables, manifest)
    if shifts:
        tables = clocks.shift_times(tables, shifts)
        manifest.notes.append(clocks.statement(shifts))
    manifest.notes += [f"bundle not read: {text}" for text in problems]
    if problems:
        manifest.complete = False
    writer = BundleWriter(output, force=force)
    for name, table in tables.items():
        if len(table):
            writer.write_table(name, table)
    writer.write_manifest(manifest)
    if workflow is not None:
        _declare(output, workflow)
    for text in [*problems, *(p for b in parts for p in b.problems)]:
        click.echo(f"tracehint: left out: {text}", err=True)
    if not quiet:
        hosts = len({h.name for h in manifest.hosts})
        click.echo(f"tracehint: {len(parts)} bundles of {hosts} hosts in {output}", err=True)
        if shifts:
            click.echo(f"  {clocks.statement(shifts)}", err=True)
    return 0
