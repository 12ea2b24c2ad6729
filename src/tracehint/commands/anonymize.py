"""`tracehint anonymize`: a bundle that can be shared."""

from __future__ import annotations

from pathlib import Path

import click

from tracehint.progress import stage
from tracehint.schemas.arrow import skip_pandas


@click.command()
@click.argument("bundle", type=click.Path())
@click.option("-o", "--output", required=True, help="The new bundle.")
@click.option(
    "--key", help="Secret; equal keys give equal pseudonyms. Default: random, not stored."
)
@click.option("--force", is_flag=True, help="Replace the output bundle.")
def command(bundle: str, output: str, key: str | None, force: bool) -> None:
    """Write a copy of BUNDLE in which names, paths, hosts and arguments are replaced by
    pseudonyms.

    The same name gets the same pseudonym everywhere. File endings, counters,
    times, sizes and the names of public programs stay, so that patterns and
    reports come out as before.

    Example: tracehint anonymize run.trace -o shared.trace
    """
    import secrets

    from tracehint.hintgen.anonymize import anonymize
    from tracehint.schemas.store import read_bundle

    skip_pandas()
    secret = key.encode("utf-8", "surrogateescape") if key else secrets.token_bytes(32)
    with stage("pseudonymising"):
        anonymize(read_bundle(bundle), Path(output), secret, force=force)
    click.echo(f"tracehint: wrote {output}", err=True)
