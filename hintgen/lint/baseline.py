"""Baseline files: findings that are known and accepted, one fingerprint each.

JSON: `{"schema": "tracehint.baseline/1", "findings": [{"fingerprint", "code", "template"}]}`.
Findings are matched by fingerprint alone; the other fields are for people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.plain import named_path

if TYPE_CHECKING:
    from tracehint.hintgen.lint.finding import Finding

SCHEMA = "tracehint.baseline/1"
_FILE = TextFile(
    kind="A baseline",
    limit="hints-bytes",
    remedy="Write it again.",
    check="Write one: tracehint lint BUNDLE --write-baseline FILE",
)


def read(path: Path) -> frozenset[str]:
    """Return the fingerprints in the file. Raises InputError if it is missing or damaged."""
    data = _FILE.json(path)
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, not {SCHEMA!r}")
        return frozenset(str(entry["fingerprint"]) for entry in data["findings"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a baseline: {error}", "Write it again.") from None


def read_baseline(name: str) -> frozenset[str]:
    """Return the fingerprints in the named file; empty name: none. Raises InputError."""
    return read(named_path(name)) if name else frozenset()


def dump(findings: Sequence[Finding]) -> str:
    """Return the text of a baseline that accepts all given findings."""
    entries = [
        {"fingerprint": f.fingerprint, "code": f.code, "template": f.template}
        for f in sorted(findings, key=lambda f: (f.code, f.template, f.fingerprint))
    ]
    return json.dumps({"schema": SCHEMA, "findings": entries}, indent=1) + "\n"


def split(findings: Sequence[Finding], known: frozenset[str]) -> tuple[list[Finding], int]:
    """Return the findings that are not in the baseline, and the number of those that are."""
    fresh = [f for f in findings if f.fingerprint not in known]
    return fresh, len(findings) - len(fresh)
