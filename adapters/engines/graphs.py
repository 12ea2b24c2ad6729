"""Readers of engines' graphs and logs: the table, the choice, and the bundle they make."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tracehint.adapters.engines.graph_base import DeclaredGraph, open_packed
from tracehint.errors import InputError

_HEAD = 64 << 10


class Reader(Protocol):
    """A module of this folder. `sniff` gets the path and the start of the file (empty for a
    directory) and must not raise; `read` raises InputError."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether this is the engine's file or directory."""

    def read(self, path: Path) -> DeclaredGraph:
        """The graph."""


@dataclass(frozen=True)
class Entry:
    """One engine: the module that reads it and what may be given, for messages and docs."""

    module: str
    reads: str


# In the order in which they are tried. To add one: a file beside this one, and a line here.
READERS: dict[str, Entry] = {
    "wfformat": Entry("wfformat_graph", "WfFormat 1.0-1.6 instance (.json, also packed)"),
    "snakemake": Entry("snakemake_graph", "directory with .snakemake, or --detailed-summary"),
    "nextflow": Entry("nextflow_graph", "trace.txt (its work directory beside it is used)"),
    "parallel": Entry("parallel_graph", "file of --joblog"),
    "make": Entry("make_graph", "output of make -np or make --debug=j"),
    "cwl": Entry("cwl_graph", "directory of cwltool --provenance"),
    "pegasus": Entry("pegasus_graph", "workflow.yml"),
    "makeflow": Entry("makeflow_graph", "Makeflow file (classic, JSON) or .makeflowlog"),
}


def load(engine: str) -> Reader:
    """The reader of an engine."""
    if engine not in READERS:
        raise InputError(f"{engine}: no reader for this engine", f"Known: {', '.join(READERS)}")
    module: Reader = importlib.import_module(f"tracehint.adapters.engines.{READERS[engine].module}")
    return module


def sniff(path: Path) -> str | None:
    """The engine whose file this is; None: no reader knows it. Raises InputError (unreadable)."""
    head = b""
    if not path.is_dir():
        try:
            with open_packed(path) as stream:
                head = stream.read(_HEAD)
        except (OSError, EOFError, ValueError):
            return None
    return next((engine for engine in READERS if load(engine).sniff(path, head)), None)


def read_graph(path: Path, engine: str | None = None) -> DeclaredGraph:
    """The declared graph of a file or directory. Raises InputError."""
    chosen = engine or sniff(path)
    if chosen is None:
        known = "; ".join(f"{name}: {entry.reads}" for name, entry in READERS.items())
        raise InputError(f"{path}: no engine's graph or log is recognised", f"Known: {known}")
    return load(chosen).read(path)


def write_declared_bundle(graph: DeclaredGraph, output: Path, *, force: bool = False) -> None:
    """A bundle of a declared graph alone: no processes, no bytes."""
    import os

    import tracehint
    from tracehint.schemas.manifest import Host, Manifest
    from tracehint.schemas.store import BundleWriter

    writer = BundleWriter(output, force=force)
    writer.write_table("declared_tasks", graph.tasks)
    if graph.io.num_rows:
        writer.write_table("declared_io", graph.io)
    hosts = graph.tasks.column("host").unique().to_pylist()
    writer.write_manifest(
        Manifest(
            program=f"tracehint {tracehint.__version__}",
            collector=f"import:{graph.engine}",
            cwd=os.fsdecode(graph.cwd),
            started_ns=graph.started_ns,
            ended_ns=graph.ended_ns,
            complete=True,
            hosts=[Host(name=host) for host in hosts],
            blind_to=["bytes", "offsets", "order"],
            notes=["declared by the engine, nothing observed", *graph.notes],
        )
    )
