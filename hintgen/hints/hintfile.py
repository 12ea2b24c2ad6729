"""Read and write hint files, validating untrusted input; model.py declares the records."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from tracehint.errors import InputError
from tracehint.hintgen.hints.model import (
    FORMULAS,
    HINTS_SCHEMA,
    MAX_NODES,
    Formula,
    Hint,
    HintFile,
    Plan,
    Rule,
    sayable,
)
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.hints.vocabulary import valid
from tracehint.hintgen.text.textfile import TextFile
from tracehint.limits import check
from tracehint.schemas.kinds import instead, what_is
from tracehint.schemas.plain import replacing

MAX_WORD = 255  # bytes of a maker's word
_FILE = TextFile(
    kind="A hint file",
    limit="hints-bytes",
    check="Check the path.",
    remedy="Write it again with `tracehint hints`.",
)


def parse_hints(text: bytes, origin: str = "hint file") -> HintFile:
    """Parse a hint file from JSON text. Raises InputError with the first fault."""
    hints = _FILE.decode(text, origin, HintFile)
    check("hint-rules", origin, len(hints.rules))
    check("hint-rules", origin, len(hints.refused) // 10)
    for key in ("tasks", "files") if hints.plan else ():
        check("plan-rows", f"{origin}: {key} of the plan", len(getattr(hints.plan, key)))
    for fault in _faults(hints):
        raise InputError(f"{origin}: {fault}", _FILE.remedy)
    return hints


def _faults(hints: HintFile) -> Iterator[str]:
    """Yield faults that the record types cannot express."""
    nodes = hints.parameters.get("nodes", 1)
    if type(nodes) is not int or not 1 <= nodes <= MAX_NODES:
        yield f"'nodes' is not a number from 1 to {MAX_NODES:,}"
    if not isinstance(hints.parameters.get("nodes_given", False), bool):
        yield "'nodes_given' must be true or false"
    yield from _duplicates("rule", (rule.id for rule in hints.rules))
    yield from _duplicates("maker", (maker.word for maker in hints.makers))
    yield from _duplicates("directory", (folder.path for folder in hints.directories))
    for rule in hints.rules:
        for fault in _rule_faults(rule):
            yield f"rule {rule.id[:80]!r}: {fault}"
    for maker in hints.makers:
        if len(to_bytes(maker.word)) > MAX_WORD:
            yield f"maker {maker.word[:80]!r} is longer than {MAX_WORD} bytes"
    for folder in hints.directories:
        yield from _target_faults(folder.path, folder.hints)
    if hints.plan is not None:
        yield from _plan_faults(hints.plan)


def _duplicates(what: str, names: Iterator[Any]) -> Iterator[str]:
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        yield f"the {what} {name[:80]!r} occurs twice"


def _rule_faults(rule: Rule) -> Iterator[str]:
    if rule.regex != parse(rule.template).regex:
        yield f"the regex of {rule.template[:80]!r} differs from that of its template"
    for other in rule.exclude:
        parse(other)
    for text in rule.conditions.beside:
        if [part for part in parse(text).parts if isinstance(part, str)] != ["name"]:
            yield f"the sibling name {text[:80]!r} must contain exactly one {{name}}"
    for values in rule.per_file.values():
        yield from _value_faults(values)
    for hint in (*rule.hints, *(hint for variant in rule.variants for hint in variant.hints)):
        yield from _value_faults({hint.name: hint.value})
        yield from _formula_faults(hint, hint.formula)


def _formula_faults(hint: Hint, formula: Formula) -> Iterator[str]:
    wanted, allowed = FORMULAS[formula.fn]
    given = frozenset(to_builtins(formula))
    if not wanted <= given <= wanted | allowed:
        keys = ", ".join(sorted(given)) or "none"
        yield f"the formula {formula.fn!r} of {hint.name} has wrong keys: {keys}"
    if formula.fn in ("replicas", "region") and not hint.value.isdigit():
        yield f"{hint.name}={hint.value[:80]!r} is not a number, but has a formula"
    for template, _, _ in formula.counts:
        parse(template)


def _plan_faults(plan: Plan) -> Iterator[str]:
    yield from _duplicates("task of the plan", (task.name for task in plan.tasks))
    yield from _duplicates("file of the plan", (to_bytes(file.path) for file in plan.files))
    for what, part in (
        *((task.name, task.part) for task in plan.tasks),
        *((file.path, file.part) for file in plan.files),
    ):
        if part is not None and part >= plan.parts:
            yield f"the part of {what[:80]!r} is beyond the plan's {plan.parts} parts"
    for file in plan.files:
        yield from _target_faults(file.path, file.hints)


def _target_faults(path: str, hints: Mapping[str, str]) -> Iterator[str]:
    if not sayable(to_bytes(path)):
        yield f"{path[:80]!r} is not a path below the data root"
    yield from _value_faults(hints)


def _value_faults(hints: Mapping[str, str]) -> Iterator[str]:
    for name, value in hints.items():
        if not valid(name, value):
            yield f"{name[:80]!r}={value[:80]!r} is not a known hint"


def to_json(hints: HintFile) -> dict[str, Any]:
    """Return the hint file as JSON data, without keys for a missing plan or no directories."""
    data: dict[str, Any] = to_builtins(asdict(hints))
    if hints.plan is None:
        del data["plan"]
    if not hints.directories:
        del data["directories"]
    return {"schema": data.pop("schema"), **data}


def dump(hints: HintFile, path: Path, *, force: bool = False) -> None:
    """Write a hint file; replace an existing file only with `force`."""
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
    """Whether the file starts like a hint file (`load` may still reject it)."""
    try:
        with path.open("rb") as stream:
            return HINTS_SCHEMA.encode() in stream.read(4096)
    except OSError:
        return False


def load(path: Path) -> HintFile:
    """Read a hint file. Raises InputError with the first fault."""
    try:
        return parse_hints(_FILE.read(path), str(path))
    except InputError:
        if what_is(path) != "hints":
            raise InputError(*instead("hints", path)) from None
        raise
