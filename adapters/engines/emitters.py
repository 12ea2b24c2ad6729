"""Request and result of an engine's emitter, and its call."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.engines.registry import ENGINES, load
from tracehint.adapters.stores.base import Gap, Store
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile


@dataclass(frozen=True, kw_only=True)
class EmitRequest:
    """Options of one emit call. `workflow` is the engine's own file, if the engine needs it."""

    engine: str
    workflow: Path | None
    store: Store
    output: Path | None
    nodes: int | None = None
    allow_trusted: bool = False
    local_dir: str = ""  # node-local directory on all nodes; empty: the engine's default
    shared_dir: str = ""  # path of the data on all nodes; empty: unknown
    temporary: bool = False  # let the engine delete files hinted as temporary
    locations: Path | None = None  # JSON of `tracehint locate`
    run: Path | None = None  # a recorded run of the same workflow
    hosts: Path | None = None  # host file: the nodes of a plan's parts, in order
    precreate: bool = False  # create outputs, empty and tagged, before their task


@dataclass(kw_only=True)
class Emitted:
    """Files to write (None: standard output), the executable ones, and remarks for the user."""

    files: dict[Path | None, bytes]
    executable: set[Path] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    gaps: dict[Gap, int] = field(default_factory=dict)


_SEARCHED_BYTES = 1 << 20  # bytes searched for a statement


def refuse_other_files(engine: str, workflow: Path) -> None:
    """Raise InputError for a file that is unreadable or not a workflow of this engine."""
    try:
        fd = os.open(workflow, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as stream:
            text = stream.read(_SEARCHED_BYTES)
    except OSError as error:
        raise InputError(
            f"{workflow}: {error.strerror}", f"Name the workflow file of {engine}."
        ) from None
    statement = ENGINES[engine].statement
    if statement and not re.search(statement, text):
        raise InputError(
            f"{workflow} is not a workflow of {engine}: it contains none of its statements",
            f"Name the file that {engine} runs.",
        )


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Run the engine's emitter. Raise InputError for a workflow file of another program."""
    if request.workflow is not None:
        refuse_other_files(request.engine, request.workflow)
    module, _, function = ENGINES[request.engine].emit.partition(":")
    result: Emitted = getattr(load(module), function)(hints, request)
    return result
