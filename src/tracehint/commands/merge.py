"""`tracehint merge`: the bundles of several hosts or tasks as one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.errors import BundleError, TracehintError
from tracehint.hintgen.text.units import plural
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


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

    Bundles that cannot be read are listed and left out; the same recording
    given twice is refused. Clocks are moved only
    where a file would be read before it was made; the correction is stated in
    the bundle.

    Example: tracehint merge node*.trace -o run.trace
    """
    from tracehint.collectors import clocks
    from tracehint.collectors.ebpf.missed import add_missed, missed_beside
    from tracehint.collectors.identity import refuse_twice
    from tracehint.collectors.join import join_bundles
    from tracehint.commands._workflow import check_workflow, declare
    from tracehint.schemas.store import Bundle, BundleWriter, add_losses, read_bundle
    from tracehint.schemas.writing import refuse_existing, write_bundle

    skip_pandas()
    if workflow is not None:
        check_workflow(workflow)
    if output.absolute() in {path.absolute() for path in bundles}:
        raise BundleError(f"{output}: is one of the bundles", "Choose another name with -o.")
    refuse_existing(output, force=force)
    parts, problems = [], []
    remedies: list[str] = []
    for path in bundles:
        try:
            parts.append(_of_use(read_bundle(path)))
        except TracehintError as error:
            named = path.name in error.what
            problems.append(error.what if named else f"{path}: {error.what}")
            remedies.append(error.remedy)
    if not parts:
        raise BundleError(
            "no bundle can be read: " + "; ".join(problems), "\n  ".join(dict.fromkeys(remedies))
        )
    refuse_twice(parts)
    tables, manifest = join_bundles(parts)
    for host in manifest.hosts:  # tasks that no recorder has taken up
        for path in missed_beside(bundles, host.name):
            add_missed(tables, manifest.notes, host.name, path, keep=True)
    shifts = {} if keep_clocks else clocks.corrections(tables, manifest)
    if shifts:
        tables = clocks.shift_times(tables, shifts)
        manifest.notes.append(clocks.statement(shifts))
    manifest.notes += [f"bundle not read: {text}" for text in problems]
    whole = Bundle(output, manifest, tables)
    add_losses(whole, [("unreadable_log", 1, text) for text in problems])
    writer = BundleWriter(output, force=force, keep_args=manifest.kept_args)
    write_bundle(writer, whole.tables, manifest)
    if workflow is not None:
        declare(output, workflow)
    for text in [*problems, *(f"{b.path.name}: {p}" for b in parts for p in b.problems)]:
        click.echo(f"tracehint: left out: {text}", err=True)
    if not quiet:
        hosts = plural(len({h.name for h in manifest.hosts}), "host")
        click.echo(f"tracehint: {plural(len(parts), 'bundle')} of {hosts} in {output}", err=True)
        if shifts:
            click.echo(f"  {clocks.statement(shifts)}", err=True)
    return 0


def _of_use(bundle: Bundle) -> Bundle:
    """The bundle. Raises BundleError where nothing of it can be read."""
    if bundle.problems and not any(t.num_rows for n, t in bundle.tables.items() if n != "losses"):
        raise BundleError(f"{bundle.path.name}: {bundle.problems[0]}", "Record the run again.")
    return bundle
