"""What every engine's emitter takes and gives, and the table of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.stores.base import Gap, Store
from tracehint.hintgen.hints.model import HintFile

# engine -> module in this folder with a function `emit(hints, request) -> Emitted`
EMITTERS: dict[str, str] = {
    "makeflow": "makeflow_emit",
    "swift": "swift_emit",
    "swift-k": "swift_k_emit",
    "swift-t": "swift_t_emit",
    "snakemake": "snakemake_emit",
    "nextflow": "nextflow_emit",
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
    local_dir: str = "/dev/shm"  # a directory that every node has for itself
    shared_dir: str = ""  # where all nodes see the data; empty: the working directory
    temporary: bool = False  # let the engine delete what hints call temporary
    locations: Path | None = None  # JSON of `tracehint locate`
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
    module = importlib.import_module(f"tracehint.adapters.engines.{EMITTERS[request.engine]}")
    result: Emitted = module.emit(hints, request)
    return result
