"""Swift/K (a log, a policy file) and Swift/T (a log, locations), and an emitter for both."""

from __future__ import annotations

from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.hintgen.hints.model import HintFile


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the policy file F and the locations F.swift; without -o only the former, on stdout."""
    from tracehint.adapters.engines.swift import k, t

    policies = k.emit(hints, request)
    if request.output is None:
        policies.remarks.append("With -o F the locations for Swift/T are written to F.swift.")
        return policies
    locations = t.emit(hints, request)
    (text,) = locations.files.values()
    return Emitted(
        files={**policies.files, Path(f"{request.output}.swift"): text},
        remarks=[*policies.remarks, f"For Swift/T see {request.output.name}.swift."],
        gaps=policies.gaps,
    )
