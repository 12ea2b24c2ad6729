"""Findings as JSON: `{"schema": "tracehint.findings/1", "findings": [...]}`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.text.escape import text

if TYPE_CHECKING:
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.lint.render import Info


def as_dict(finding: Finding) -> dict[str, Any]:
    """The finding as plain JSON values; paths as visible text."""
    data = dataclasses.asdict(finding)
    data["examples"] = [text(path) for path in finding.examples]
    data["assumed"] = list(finding.assumed)
    data["fingerprint"] = finding.fingerprint
    return data


def render(findings: Sequence[Finding], info: Info) -> str:
    """One JSON document."""
    document = {
        "schema": "tracehint.findings/1",
        "tool": info.tool,
        "subject": text(info.subject),
        "findings": [as_dict(f) for f in findings],
        "rules_without_facts": info.skipped,
        "suppressed": info.suppressed,
    }
    if info.saved is not None:
        document["hints_save"] = {
            "network_bytes": info.saved.network,
            "waiting_bytes": info.saved.waiting,
        }
    return json.dumps(document, indent=1, default=str)
