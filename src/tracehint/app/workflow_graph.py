"""Add the graph that a workflow file declares to a bundle, in memory or on disk."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.errors import TracehintError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


_DECLARED = ("declared_tasks", "declared_io")


def check_workflow(workflow: Path) -> None:
    """Raise UsageError if there is no such file or directory."""
    if not workflow.exists():
        raise UsageError(f"{workflow}: no such workflow file", "Give the engine's file or log.")


def declare(bundle: Path, workflow: Path) -> None:
    """Add the tasks and files that the workflow declares to a bundle that was just written."""
    from tracehint.schemas.store import segment_files
    from tracehint.schemas.writer import BundleWriter

    joined = with_workflow(str(bundle), str(workflow), ("extents", "metadata_ops"))
    writer = BundleWriter.append_to(bundle)
    for name in _DECLARED:
        for path in segment_files(writer.path.inside, name):
            path.unlink()  # its rows are in the joined table
        if joined.tables[name].num_rows:
            writer.write_table(name, joined.tables[name])


def with_workflow(bundle: str, workflow: str, without: Collection[str] = ()) -> Bundle:
    """Return the bundle with the declared tasks and files of `workflow` (any engine's file or log).

    Relative names in the workflow are resolved where the run took place
    (adapters/engines/run_logs.py). `without`: tables that are not read, none
    of those that identify tasks. Raises InputError, BundleError.
    """
    import pyarrow as pa

    from tracehint.adapters.engines.graphs import read_graph
    from tracehint.adapters.engines.run_logs import relocate_graph
    from tracehint.schemas.redact.tables import Redactor
    from tracehint.schemas.store import read_bundle

    run = read_bundle(bundle, without=without)
    check_workflow(Path(workflow))
    graph = read_graph(Path(workflow))
    host = run.manifest.hosts[0].name if run.manifest.hosts else "unknown"
    tasks = without_times(graph.tasks) if graph.placed else graph.tasks
    io = relocate_graph(graph, run).io
    redactor = Redactor(no_args=run.manifest.no_args)
    for name, table in zip(_DECLARED, (tasks, io), strict=True):
        if not run.manifest.kept_args:
            table = redactor.table(name, table)
        index = table.column_names.index("host")
        column = pa.array([host] * table.num_rows, pa.string())
        table = table.set_column(index, table.schema.field("host"), column)
        run.tables[name] = pa.concat_tables([run.tables[name], table]).combine_chunks()
    return run


def without_times(tasks: pa.Table) -> pa.Table:
    """Return declared tasks without start and end: times that were derived from runtimes must not
    be compared with observed ones."""
    import pyarrow as pa

    for name in ("start_ns", "end_ns"):
        index = tasks.column_names.index(name)
        column = pa.nulls(tasks.num_rows, pa.int64())
        tasks = tasks.set_column(index, tasks.schema.field(name), column)
    return tasks


def join_engine_logs(bundle: Path) -> None:
    """Add names, rules and attempts from the logs of the run's engines; errors are printed only."""
    from tracehint.adapters.engines.run_logs import attach

    try:
        attach(bundle)
    except TracehintError as error:
        click.echo(f"tracehint: the engine's log was not joined: {error}", err=True)
