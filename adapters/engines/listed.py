"""A Makeflow workflow with the file lists of a recorded run, for engines that move files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest
from tracehint.adapters.engines.file_lists import Lists, lists_of, with_lists
from tracehint.adapters.engines.observed import Observed, observe
from tracehint.adapters.engines.workflow import Workflow, read_workflow
from tracehint.errors import UsageError


@dataclass(frozen=True)
class Listed:
    """The workflow as it was, what was seen of it, and its text with other lists."""

    workflow: Workflow
    observed: Observed
    lists: Sequence[Lists]
    text: bytes
    left: int
    output: Path


def listed(request: EmitRequest, suffix: str) -> Listed:
    """The workflow of the request; `suffix` of the file where none is named. Raises UsageError."""
    if request.workflow is None or request.run is None:
        raise UsageError(
            "the lists come from the workflow and a recorded run of it",
            f"tracehint emit H.json --workflow-engine {request.engine} W.makeflow --like RUN -o F",
        )
    workflow, observed = read_workflow(request.workflow), observe(request.run)
    lists = lists_of(workflow, observed)
    text, left = with_lists(workflow, lists)
    output = request.output or Path(request.workflow.name + suffix)
    return Listed(workflow, observed, lists, text, left, output)
