"""Findings as SARIF 2.1.0, the format of code-scanning services."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.text.escape import text, uri

if TYPE_CHECKING:
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.lint.render import Info

_LEVEL = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render(findings: Sequence[Finding], info: Info) -> str:
    """One SARIF log with one run. Locations are files of the run, not lines of code."""
    rules = dict(info.rules) or {f.code: f.name for f in findings}
    for finding in findings:
        rules.setdefault(finding.code, finding.name)
    order = {code: index for index, code in enumerate(rules)}
    name, _, version = info.tool.partition(" ")
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": name,
                "version": version,
                "semanticVersion": version,
                "rules": [_rule(code, rule) for code, rule in rules.items()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            "DATAROOT": {"description": {"text": "The data root of the traced run"}}
        },
        "results": [_result(f, order[f.code], info) for f in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(code: str, name: str) -> dict[str, Any]:
    described = {"id": code, "name": "".join(part.capitalize() for part in name.split("-"))}
    return {**described, "shortDescription": {"text": name.replace("-", " ")}}


def _result(finding: Finding, index: int, info: Info) -> dict[str, Any]:
    message = f"{finding.message} ({finding.template})" if finding.template else finding.message
    locations = [_location(path) for path in finding.examples]
    if info.workflow:
        locations.insert(0, {"physicalLocation": {"artifactLocation": {"uri": uri(info.workflow)}}})
    saves = finding.saves
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": text(message)},
        "locations": locations,
        "partialFingerprints": {"tracehint/v1": finding.fingerprint},
        "rank": round(finding.confidence * 100, 1),
        "properties": {
            "files": finding.files,
            "bytes": finding.bytes,
            "savesNetworkBytes": saves.network_bytes,
            "savesWaitingBytes": saves.waiting_bytes,
            "savesStorageBytes": saves.storage_bytes,
            "savesGbHours": saves.gb_hours,
            "savesCalls": saves.operations,
            "assumed": [text(a) for a in finding.assumed],
            "fix": text(finding.fix),
        },
    }


def _location(path: bytes) -> dict[str, Any]:
    if path.startswith(b"/"):
        place = {"uri": "file://" + uri(path)}
    else:
        # A first segment with a colon would read as a scheme; uri() has quoted it.
        place = {"uri": uri(path), "uriBaseId": "DATAROOT"}
    return {"physicalLocation": {"artifactLocation": place}}
