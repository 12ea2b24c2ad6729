"""`--workflow-engine swift`: both Swifts, the policy file F and the locations F.swift."""

from __future__ import annotations

from pathlib import Path

from tracehint.adapters.engines import swift_k_emit, swift_t_emit
from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.hintgen.hints.model import HintFile


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Without -o only the policy file, on standard output."""
    policies = swift_k_emit.emit(hints, request)
    if request.output is None:
        policies.remarks.append("With -o F the locations for Swift/T are written to F.swift.")
        return policies
    locations = swift_t_emit.emit(hints, request)
    (text,) = locations.files.values()
    return Emitted(
        files={**policies.files, Path(f"{request.output}.swift"): text},
        remarks=[*policies.remarks, f"For Swift/T see {request.output.name}.swift."],
        gaps=policies.gaps,
    )
