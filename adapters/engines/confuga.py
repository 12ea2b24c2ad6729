"""Confuga: the workflow with file lists trimmed to the files in use, the same as JSON jobs, and the
pull threshold of the URI. Tested with Confuga of cctools 9.9.

Confuga copies each declared input to the node of a job: below the threshold for every job, above it
once and permanently. So lists are trimmed to the files read, and the threshold belongs between the
largest private input and the smallest shared one. The head assigns jobs in order of arrival, each
to the free node that stores most of its inputs. With more jobs submitted than nodes, an unrelated
job can occupy a node before the reader of the node's data arrives (10 chains on five nodes, 42 MB
between tasks: 17 MB of network traffic with -J 20, 2 MB with -J 5, no slower).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.makeflow.file_lists import (
    Lists,
    Observed,
    declare_listed_files,
    describe_lists,
)
from tracehint.adapters.engines.makeflow.workflow import Workflow
from tracehint.hintgen.hints.model import INPUT, HintFile
from tracehint.hintgen.text.units import size

MIN_THRESHOLD = 4096  # bytes; a smaller input costs one round trip, kept on the node or not


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the trimmed workflow, FILE.jobs.json, and how to start the store and the workflow."""
    made = declare_listed_files(request, ".confuga")
    workflow, observed, lists, output = made.workflow, made.observed, made.lists, made.output
    base = request.shared_dir.rstrip("/")
    jobs = jobs_of(workflow, lists, base)
    document = json.dumps(jobs, indent=1).encode() + b"\n"
    return Emitted(
        files={output: made.text, Path(f"{output}.jobs.json"): document},
        remarks=[
            *describe_lists(lists, observed.sizes, made.left),
            *_about_store(hints, lists, observed),
            *_how_to_run(workflow, base, output.name, request.nodes or hints.given_nodes),
        ],
    )


def jobs_of(workflow: Workflow, lists: Sequence[Lists], base: str) -> list[dict[str, Any]]:
    """Return one job per rule in the Chirp server's format; rules that are workflows have none."""
    return [
        {
            "executable": "/bin/sh",
            "arguments": ["sh", "-c", task.command],
            "environment": {},
            "tag": task.type,
            "files": [
                *(_file(base, path, "INPUT") for path in mine.inputs),
                *(_file(base, path, "OUTPUT") for path in mine.outputs),
            ],
        }
        for task, mine in zip(workflow.tasks, lists, strict=True)
        if task.at is not None
    ]


def _file(base: str, path: bytes, kind: str) -> dict[str, str]:
    name = path.decode("utf-8", "surrogateescape")
    return {"serv_path": f"{base}/{name}", "task_path": name, "type": kind, "binding": "LINK"}


def pull_threshold(private: Sequence[int], shared: Sequence[int]) -> int | None:
    """Return the size in bytes from which inputs stay on a node; None: no input is shared.

    A power of two between the largest private and the smallest shared input, if there is one;
    otherwise the size of the smallest shared input, which also keeps some private inputs.

    >>> pull_threshold([100_000, 300_000], [4_000_000, 64_000_000])
    2097152
    """
    large = [bytes_ for bytes_ in shared if bytes_ >= MIN_THRESHOLD]
    if not large:
        return None
    smallest = min(large)
    power = 1 << (smallest.bit_length() - 1)
    largest_private = max((bytes_ for bytes_ in private if bytes_ < smallest), default=0)
    return power if power > largest_private else smallest


def threshold_of(lists: Sequence[Lists], observed: Observed) -> tuple[int | None, int]:
    """Return (threshold, bytes of private inputs that reach it)."""
    uses: dict[bytes, int] = {}
    for mine in lists:
        for path in mine.inputs:
            uses[path] = uses.get(path, 0) + 1
    sizes = observed.sizes
    private = [sizes.get(path, 0) for path, count in uses.items() if count == 1]
    found = pull_threshold(private, [sizes.get(path, 0) for path, n in uses.items() if n > 1])
    return found, sum(bytes_ for bytes_ in private if found and bytes_ >= found)


def _about_store(hints: HintFile, lists: Sequence[Lists], observed: Observed) -> list[str]:
    lines = []
    threshold, kept = threshold_of(lists, observed)
    if threshold is not None:
        also = f"; it also keeps {size(kept)} of private inputs" if kept else ""
        lines.append(f"Start the head with confuga://ROOT?pull-threshold={threshold}{also}")
    if any(
        INPUT in rule.producers and any(hint.name == "Replication" for hint in rule.hints)
        for rule in hints.rules
    ):
        lines.append(
            "Inputs that many tasks read: tracehint emit H.json --store confuga copies them before "
            "the run (setrep)"
        )
    return lines


def _how_to_run(workflow: Workflow, base: str, name: str, nodes: int | None) -> list[str]:
    """Return the command line and the reason for -J. The head runs one job per storage node; a job
    queued there gets any free node, one held by Makeflow is sent when its writer's node is free."""
    flag = " --json" if workflow.data is not None else ""
    jobs = str(nodes) if nodes else "NODES"
    run = f"makeflow{flag} -T chirp -J {jobs} --working-dir=chirp://HEAD:PORT{base or '/'} {name}"
    reason = "one job at a time per storage node, so that no job waits for the wrong node"
    return [f"Run: {run}", f"-J {jobs}: {reason}"]
