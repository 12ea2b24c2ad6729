"""The part of SARIF 2.1.0 that tracehint writes, as a JSON Schema.

Written by hand from sections 3.13 to 3.52 of the standard: no objects with
unknown members, required members, types and enumerations. The standard's own
schema is not part of any Python package, and tests use no network.
"""

from __future__ import annotations

from typing import Any


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = _object(["text"], text=_TEXT)
_ARTIFACT = _object(["uri"], uri={"type": "string", "format": "uri-reference"}, uriBaseId=_TEXT)
_PLACE = _object(["artifactLocation"], artifactLocation=_ARTIFACT)
_LOCATION = _object(["physicalLocation"], physicalLocation=_PLACE)
_RESULT = _object(
    ["message"],
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations={"type": "array", "items": _LOCATION},
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    rank={"type": "number", "minimum": -1, "maximum": 100},
    properties={"type": "object"},
)
_RULE = _object(["id"], id=_TEXT, name=_TEXT, shortDescription=_MESSAGE)
_DRIVER = _object(
    ["name"],
    name=_TEXT,
    version=_TEXT,
    semanticVersion=_TEXT,
    rules={"type": "array", "items": _RULE, "uniqueItems": True},
)
_RUN = _object(
    ["tool", "results"],
    tool=_object(["driver"], driver=_DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={
        "type": "object",
        "additionalProperties": _object([], uri=_TEXT, description=_MESSAGE),
    },
    results={"type": "array", "items": _RESULT},
)
SARIF_SUBSET: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        ["$schema", "version", "runs"],
        **{
            "$schema": _TEXT,
            "version": {"const": "2.1.0"},
            "runs": {"type": "array", "items": _RUN},
        },
    ),
}
