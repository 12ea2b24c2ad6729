"""Hint files: writing, and reading what others may have written (hintgen/hints/hintcheck.py)."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.folders import folders_to_json
from tracehint.hintgen.hints.hintcheck import from_json
from tracehint.hintgen.hints.model import HINTS_SCHEMA, HintFile
from tracehint.hintgen.hints.planjson import plan_to_json
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.kinds import instead, what_is
from tracehint.schemas.plain import replacing

_FILE = TextFile(
    kind="A hint file",
    limit="hints-bytes",
    check="Check the path.",
    remedy="Write it with `tracehint hints`.",
)


def to_json(hints: HintFile) -> dict[str, Any]:
    """The hint file as JSON data (schemas/hints.schema.json)."""
    data = asdict(replace(hints, plan=None, directories=()))
    del data["plan"], data["directories"]
    more: dict[str, Any] = {} if hints.plan is None else {"plan": plan_to_json(hints.plan)}
    if hints.directories:
        more["directories"] = folders_to_json(hints.directories)
    return {"schema": HINTS_SCHEMA, **data, **more}


def dump(hints: HintFile, path: Path, *, force: bool = False) -> None:
    """Write a hint file; an existing one only with `force`."""
    text = json.dumps(to_json(hints), indent=1) + "\n"
    try:
        if force:
            with replacing(path) as fd, os.fdopen(fd, "wb", closefd=False) as stream:
                stream.write(text.encode())
        else:
            with path.open("x", encoding="utf-8") as out:
                out.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} exists", "Give another -o, or --force.") from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another -o.") from error


def is_hint_file(path: Path) -> bool:
    """True when the file begins as a hint file does (it may still be refused by `load`)."""
    try:
        with path.open("rb") as stream:
            return HINTS_SCHEMA.encode() in stream.read(4096)
    except OSError:
        return False


def load(path: Path) -> HintFile:
    """Read a hint file; raises InputError naming the first thing that is wrong."""
    try:
        return from_json(_FILE.json(path), str(path))
    except InputError:
        if what_is(path) != "hints":
            raise InputError(*instead("hints", path)) from None
        raise
