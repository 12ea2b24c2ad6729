"""What every engine's emitter takes and gives, and the table of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tracehint.adapters.stores.base import Gap, Store
from tracehint.hintgen.hints.model import HintFile


@dataclass(frozen=True)
class Emitter:
    """`module` of this folder has `emit(hints, request) -> Emitted`; `programs` run the engine.

    `source` finds the workflow among the program's arguments, for engines whose annotations go
    into a copy of it; None: they stand beside it.
    """

    module: str
    programs: tuple[str, ...] = ()
    source: Callable[[Sequence[str]], str] | None = None


def last_file(arguments: Sequence[str]) -> str:
    """The last argument that is a file: `makeflow OPTIONS FILE`."""
    return next((a for a in reversed(arguments) if Path(a).is_file()), "Makeflow")


def snakefile(arguments: Sequence[str]) -> str:
    """The argument of -s, or where Snakemake looks."""
    named = [b for a, b in pairwise(arguments) if a in ("-s", "--snakefile")]
    usual = [p for p in ("Snakefile", "workflow/Snakefile") if Path(p).is_file()]
    return [*named, *usual, "Snakefile"][0]


# The engines that hints can be written for: a line each, used by `emit` and by what `profile`
# proposes next.
EMITTERS: dict[str, Emitter] = {
    "makeflow": Emitter("makeflow_emit", ("makeflow",), last_file),
    "swift": Emitter("swift_emit"),
    "swift-k": Emitter("swift_k_emit", ("swift",)),
    "swift-t": Emitter("swift_t_emit", ("swift-t",)),
    "snakemake": Emitter("snakemake_emit", ("snakemake",), snakefile),
    "nextflow": Emitter("nextflow_emit", ("nextflow",)),
    "confuga": Emitter("confuga_emit"),
    "work-queue": Emitter("work_queue_emit"),
    "cwl": Emitter("cwl_emit"),
    "pegasus": Emitter("pegasus_emit"),
    "parsl": Emitter("parsl_emit"),
    "dask": Emitter("dask_emit"),
    "taskvine": Emitter("taskvine_emit"),
    "slurm": Emitter("slurm_emit"),
    "json": Emitter("json_emit"),
}


@dataclass(frozen=True, kw_only=True)
class EmitRequest:
    """What the user asked for. `workflow` is the engine's own file, where the engine needs it."""

    engine: str
    workflow: Path | None
    store: Store
    output: Path | None
    nodes: int | None = None
    allow_trusted: bool = False
    local_dir: str = ""  # a directory that every node has for itself; empty: the engine's own
    shared_dir: str = ""  # where all nodes see the data; empty: not known
    temporary: bool = False  # let the engine delete what hints call temporary
    locations: Path | None = None  # JSON of `tracehint locate`
    run: Path | None = None  # a recorded run of the same workflow
    hosts: Path | None = None  # host file: the nodes of a plan's parts, in its order
    precreate: bool = False  # make outputs, empty and tagged, before the task that writes them


@dataclass(kw_only=True)
class Emitted:
    """Files to write (None: standard output), which of them are programs, and what to tell."""

    files: dict[Path | None, bytes]
    executable: set[Path] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    gaps: dict[Gap, int] = field(default_factory=dict)


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Run the engine's emitter."""
    module = importlib.import_module(
        f"tracehint.adapters.engines.{EMITTERS[request.engine].module}"
    )
    result: Emitted = module.emit(hints, request)
    return result
