"""Small hint files for the tests of adapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracehint.hintgen.hints.hintfile import dump, parse_hints
from tracehint.hintgen.hints.model import Hint, HintFile, Refusal, Rule
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.template import parse

PATTERN = {"local": "pipeline", "collocation": "reduce", "scatter": "scatter"}


def rule(template: str, *, producer: str | None = "make", **values: Any) -> Rule:
    """Return a rule; hints as keywords (DP="local") or `hints=(Hint(...), ...)`, Rule's fields."""
    names = [n for n in values if n[0].isupper()]
    hints = tuple(Hint(n, str(values.pop(n)), "create") for n in names)
    given: dict[str, Any] = {
        "id": "r-" + template, "consumers": ("use",), "confidence": 0.9,
        "pattern": PATTERN.get(hints[0].value.partition("|")[0], "broadcast") if hints else "",
        "evidence": {"files": 3, "bytes": 3000}, "hints": hints,
    }  # fmt: skip  # a table
    given.update(values)
    parsed = parse(template)
    return Rule(
        template=template,
        regex=parsed.regex,
        directory=to_text(parsed.directory),
        producer=producer,
        producers=(producer,) if producer else (),
        **given,
    )


def hint_file(*rules: Rule, refused: tuple[Refusal, ...] = ()) -> HintFile:
    """Return a hint file with these rules."""
    return HintFile(learned_from=(), parameters={}, rules=rules, refused=refused)


def json_schema(name: str) -> Any:
    """Return a JSON Schema of the documentation."""
    page = Path(__file__).parents[2] / "docs" / "reference" / f"{name}.schema.json"
    return json.loads(page.read_text(encoding="utf-8"))


def parsed(data: Any) -> HintFile:
    """Return the hint file with this JSON data."""
    return parse_hints(json.dumps(data).encode())


def save(folder: Path, *rules: Rule) -> Path:
    """Write a hint file and return its path."""
    path = folder / "hints.json"
    dump(hint_file(*rules), path, force=True)
    return path


def literal(name: bytes, **values: Any) -> Rule:
    """Return a rule that matches exactly one path, of any bytes."""
    return rule(to_text(name, braces=True), **values)


def fitted_names(monkeypatch: pytest.MonkeyPatch, index: type[Any]) -> list[bytes]:
    """Record the names that are looked up in an index (a class with `find_fitting`) from now on."""
    names: list[bytes] = []
    fitting = index.find_fitting
    monkeypatch.setattr(
        index,
        "find_fitting",
        lambda self, subject: (names.append(subject.name), fitting(self, subject))[1],
    )
    return names
