#!/usr/bin/env python3
"""Write docs/reference/*.schema.json from the records they describe; `--check` compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from generated import write_or_check

from tracehint.analyzer.output.document import AnalysisDocument
from tracehint.analyzer.predict.result import PredictionDocument
from tracehint.hintgen.compare.proof import Comparison
from tracehint.hintgen.compare.score import ScoreDocument
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.plan.result import PlanDocument

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
# name -> record; version 1 of each
RECORDS = {
    "analysis": AnalysisDocument,
    "compare": Comparison,
    "hints": HintFile,
    "plan": PlanDocument,
    "prediction": PredictionDocument,
    "score": ScoreDocument,
}


def main() -> int:
    codes = []
    for name, record in RECORDS.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:tracehint:{name}:1",
            **_with_clean_texts(msgspec.json.schema(record)),
        }
        text = json.dumps(schema, indent=1) + "\n"
        codes.append(write_or_check(FOLDER / f"{name}.schema.json", text, "gen_schemas.py"))
    return max(codes)


def _with_clean_texts(schema: Any) -> Any:
    """Remove line breaks and indentation from the descriptions, which are docstrings."""
    if isinstance(schema, list):
        return [_with_clean_texts(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {key: _with_clean_texts(value) for key, value in schema.items()}
    if isinstance(text := cleaned.get("description"), str):
        cleaned["description"] = " ".join(text.split())
    return cleaned


if __name__ == "__main__":
    sys.exit(main())
