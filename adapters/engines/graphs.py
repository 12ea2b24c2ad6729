"""Choice of the reader for an engine's graph or log, and bundles of declared graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tracehint.adapters.engines.graph_base import DeclaredGraph
from tracehint.adapters.engines.registry import READERS, load
from tracehint.adapters.engines.unpack import is_packed, open_packed
from tracehint.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle

NOTHING_OBSERVED = "declared by the engine, nothing observed"
_HEAD = 64 << 10
_BATCH = 1 << 18  # rows per written segment
_MAX_FILES = 64  # files examined in a directory


class Reader(Protocol):
    """Interface of a reader module. `sniff` gets the path and the start of the file (empty for a
    directory) and must not raise; `read` raises InputError. `read_printed` exists for engines that
    print their graph before a run, and also gets the directory where they printed it."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether this is the engine's file or directory."""

    def read(self, path: Path) -> DeclaredGraph:
        """Read the graph."""

    def read_printed(self, path: Path, directory: Path) -> DeclaredGraph:
        """Read the graph that the engine printed in that directory."""


def load_reader(engine: str) -> Reader:
    """Load the reader of an engine. Raise InputError if there is none."""
    if engine not in READERS:
        raise InputError(f"{engine}: no reader for this engine", f"Known: {', '.join(READERS)}")
    module: Reader = load(READERS[engine].graph)
    return module


def sniff(path: Path) -> str | None:
    """Return the engine of a file; None if no reader recognises it. Raises InputError."""
    head = _head(path)
    return _find_engine(path, head) if head is not None else None


def is_of(engine: str, path: Path) -> bool:
    """Whether this is a file of the engine; no other reader is loaded. Raises InputError."""
    head = _head(path)
    return head is not None and load_reader(engine).sniff(path, head)


def _head(path: Path) -> bytes | None:
    """Return the start of a file, empty for a directory; None if it cannot be read."""
    if path.is_dir():
        return b""
    try:
        with open_packed(path) as stream:
            return stream.read(_HEAD)
    except (OSError, EOFError, ValueError):
        return None


def _find_engine(path: Path, head: bytes) -> str | None:
    return next((engine for engine in READERS if load_reader(engine).sniff(path, head)), None)


def read_graph(path: Path, engine: str | None = None) -> DeclaredGraph:
    """Read the declared graph of a file or directory. Raises InputError."""
    return _read_one_graph(path, engine).plain()


def _read_one_graph(path: Path, engine: str | None = None) -> DeclaredGraph:
    chosen = engine or sniff(path)
    if chosen is None:
        known = "; ".join(f"{name}: {entry.reads}" for name, entry in READERS.items())
        raise InputError(f"{path}: no engine's graph or log is recognised", f"Known: {known}")
    return load_reader(chosen).read(path)


def combine(graphs: Sequence[DeclaredGraph]) -> DeclaredGraph:
    """Merge graphs into one, with a number before task identifiers to keep them distinct."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(graphs) == 1:
        return graphs[0]
    graphs = [graph.plain() for graph in graphs]
    tasks: list[pa.Table] = []
    io: list[pa.Table] = []
    for number, graph in enumerate(graphs):
        prefix = f"{number}:"
        for table, parts in ((graph.tasks, tasks), (graph.io, io)):
            renamed = pc.binary_join_element_wise(prefix, table.column("task"), "")
            at = table.column_names.index("task")
            parts.append(table.set_column(at, table.schema.field("task"), renamed))
        at = graph.tasks.column_names.index("parents")
        above = [[prefix + p for p in ps] for ps in graph.tasks.column("parents").to_pylist()]
        column = pa.array(above, graph.tasks.schema.field("parents").type)
        tasks[-1] = tasks[-1].set_column(at, graph.tasks.schema.field("parents"), column)
    ends = [g.ended_ns for g in graphs]
    return DeclaredGraph(
        "+".join(dict.fromkeys(g.engine for g in graphs)),
        pa.concat_tables(tasks),
        pa.concat_tables(io),
        graphs[0].cwd if len({g.cwd for g in graphs}) == 1 else b"/",
        min((g.started_ns for g in graphs if g.started_ns), default=0),
        None if None in ends else max(e for e in ends if e is not None),
        tuple(note for g in graphs for note in g.notes),
        any(g.placed for g in graphs),
    )


def recognises(path: Path, head: bytes) -> bool:
    """Whether a reader recognises the file, for `tracehint import`; never raises."""
    if path.parent.name == "metadata" and path.parent.parent.name == ".snakemake":
        return True
    try:
        return sniff(path) is not None if is_packed(head) else _find_engine(path, head) is not None
    except InputError:
        return False


def import_graphs(sources: Sequence[Path], output: Path, *, force: bool = False) -> Manifest:
    """Write one bundle of the sources' graphs. Raise InputError if none can be read."""
    graphs: list[DeclaredGraph] = []
    left_out: list[str] = []
    for source in sources:
        try:
            engine = sniff(source)
            graphs.append(
                _read_one_graph(source, engine)
                if engine
                else _read_one_graph(_find_known_file(source))
            )
        except (InputError, MissingDependencyError) as error:
            if len(sources) == 1:
                raise
            left_out.append(f"left out: {error.what}")
    if not graphs:
        raise InputError("none of the graphs could be read", "; ".join(left_out[:3]))
    graph = combine(graphs)
    return write_declared_bundle(graph, output, force=force, notes=left_out)


def companions(paths: Sequence[Path]) -> set[Path]:
    """Return the paths that are read together with another of the paths (logs, job outputs)."""
    from tracehint.adapters.engines.makeflow.graph import SUFFIX
    from tracehint.adapters.engines.pegasus.graph import OUTPUT_FILE

    known = set(paths)
    logs = {p for p in known if p.with_name(p.name.removesuffix(SUFFIX)) in known - {p}}
    outputs = {p for p in known - logs if OUTPUT_FILE.search(p.name)}
    if not outputs:
        return logs
    above = {p.parent for p in known - logs - outputs if sniff(p) == "pegasus"}
    return logs | {p for p in outputs if not above.isdisjoint(p.parents)}


def _find_known_file(source: Path) -> Path:
    """Return a directory's first file that a reader recognises, otherwise the source."""
    names = sorted(source.iterdir())[:_MAX_FILES] if source.is_dir() else []
    files = [f for f in names if f.is_file() and not f.is_symlink()]
    return next((f for f in files if sniff(f)), source)


def write_declared_bundle(
    graph: DeclaredGraph, output: Path, *, force: bool = False, notes: Sequence[str] = ()
) -> Manifest:
    """Write a bundle of a declared graph alone: no processes, no bytes."""
    from tracehint.schemas.writer import BundleWriter

    writer = BundleWriter(output, force=force)
    for name, table in (("declared_tasks", graph.tasks), ("declared_io", graph.io)):
        for segment, at in enumerate(range(0, table.num_rows, _BATCH)):
            writer.write_table(name, table.slice(at, _BATCH), segment)
    manifest = _manifest(graph, notes)
    writer.write_manifest(manifest)
    return manifest


def declared_bundle(path: Path, engine: str, folder: Path | None = None) -> Bundle:
    """Return such a bundle in memory, of an engine's file or of what it printed in a directory.
    Raises InputError."""
    from tracehint.schemas.store import Bundle
    from tracehint.schemas.tables import TABLES

    graph = (
        load_reader(engine).read_printed(path, folder).plain()
        if folder is not None
        else read_graph(path, engine)
    )
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    tables |= {"declared_tasks": graph.tasks, "declared_io": graph.io}
    return Bundle(path, _manifest(graph, ()), tables)


def _manifest(graph: DeclaredGraph, notes: Sequence[str]) -> Manifest:
    import os

    from tracehint.schemas.manifest import Manifest, RecordingHost
    from tracehint.version import __version__

    hosts = graph.tasks.column("host").unique().to_pylist()
    return Manifest(
        program=f"tracehint {__version__}",
        collector=f"import:{graph.engine}",
        cwd=os.fsdecode(graph.cwd),
        started_ns=graph.started_ns,
        ended_ns=graph.ended_ns,
        complete=True,
        hosts=[RecordingHost(name=host) for host in hosts],
        blind_to=["bytes", "offsets", "order", *(["start_times"] if graph.placed else [])],
        notes=[NOTHING_OBSERVED, *graph.notes, *notes],
    )
