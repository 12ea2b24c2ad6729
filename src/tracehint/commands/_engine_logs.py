"""After a recording: what the run's engines say of it goes into the bundle."""

from __future__ import annotations

from pathlib import Path

import click

from tracehint.errors import TracehintError


def join_engine_logs(bundle: Path) -> None:
    """Names, rules and attempts from the logs that the run's engines left; never a failure."""
    from tracehint.adapters.engines.discover import attach

    try:
        attach(bundle)
    except TracehintError as error:
        click.echo(f"tracehint: the engine's log was not joined: {error}", err=True)
