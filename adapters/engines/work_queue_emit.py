"""Work Queue: the workflow with the file lists that its tasks use, and how to start it.

Workers keep the files that they got or made; `-W files` sends a task to the worker that has most of
its inputs. Without it the manager fetches every intermediate and sends it out again. Tried with
Makeflow 9.9.
"""

from __future__ import annotations

from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.file_lists import about_lists, lists_of, with_lists
from tracehint.adapters.engines.observed import observe
from tracehint.adapters.engines.workflow import read_workflow
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile


def emit(_: HintFile, request: EmitRequest) -> Emitted:
    """The trimmed workflow and the command line."""
    if request.workflow is None or request.run is None:
        raise UsageError(
            "the lists come from the workflow and a recorded run of it",
            "tracehint emit H.json --workflow-engine work-queue W.makeflow --like RUN -o F",
        )
    output = request.output or Path(request.workflow.name + ".wq")
    workflow, observed = read_workflow(request.workflow), observe(request.run)
    lists = lists_of(workflow, observed)
    text, left = with_lists(workflow, lists)
    flag = " --json" if workflow.data is not None else ""
    told = f"Run: makeflow{flag} -T wq -W files {output.name}"
    return Emitted(files={output: text}, remarks=[*about_lists(lists, observed.sizes, left), told])
