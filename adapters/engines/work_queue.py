"""Work Queue: the workflow with file lists trimmed to the files in use, and its start.

Workers keep the files that they received or produced; `-W files` sends a task to the worker with
most of its inputs. Without it the manager fetches every intermediate file and sends it again.
Tested with Makeflow 9.9.
"""

from __future__ import annotations

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.makeflow.file_lists import declare_listed_files, describe_lists
from tracehint.hintgen.hints.model import HintFile


def emit(_: HintFile, request: EmitRequest) -> Emitted:
    """Return the trimmed workflow and the command line."""
    made = declare_listed_files(request, ".wq")
    flag = " --json" if made.workflow.data is not None else ""
    run = f"Run: makeflow{flag} -T wq -W files {made.output.name}"
    about = describe_lists(made.lists, made.observed.sizes, made.left)
    return Emitted(files={made.output: made.text}, remarks=[*about, run])
