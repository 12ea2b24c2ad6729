"""`--workflow-engine swift-k`: the policy file alone."""

from __future__ import annotations

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.swift_cdm import policy_file
from tracehint.adapters.stores.base import merge_gaps
from tracehint.hintgen.hints.model import HintFile

LOCAL = "/dev/shm"  # of Linux; every node has it


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The policy file, to -o or standard output."""
    text, gaps = policy_file(hints, local=request.local_dir or LOCAL, shared=request.shared_dir)
    name = request.output.name if request.output else "F"
    return Emitted(
        files={request.output: text.encode()},
        gaps=merge_gaps(gaps),
        remarks=[f"Run: swift -cdm.file {name} WORKFLOW.swift"],
    )
