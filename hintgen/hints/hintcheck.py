"""A hint file's JSON as records, checked field by field.

A hint file is untrusted: counts are limited, unknown hints and values are
refused, templates are parsed (hintgen/hints/template.py) and the regexes in the file
must be the ones that the templates give, so none of its own is ever run.
"""

from __future__ import annotations

import sys
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.fields import MAX_TEXT, bad, entries, get
from tracehint.hintgen.hints.folders import folders_from_json
from tracehint.hintgen.hints.formulas import FORMULAS
from tracehint.hintgen.hints.model import (
    HINTS_SCHEMA,
    Hint,
    HintFile,
    Maker,
    Refusal,
    Rule,
    Variant,
)
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.planjson import plan_from_json
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.hints.vocabulary import valid
from tracehint.limits import check, limit

MAX_EXCLUDE = 64
MAX_HINTS = 16
MAX_TYPES = 10_000
MAX_PER_FILE = 100_000
MAX_NODES = 1_000_000
MAX_WORD = 255  # bytes of a process's word
WHEN = frozenset({"create", "before_read", "staging", "any"})
LEVELS = frozenset({"placement", "advisory"})
NEEDS = frozenset({"use", "types"})
NUMBERS = frozenset({"files", "bytes"})
CONDITIONS: dict[str, type] = {
    "needs": str, "min_size_bytes": int, "per_pair": int, "beside": list,
}  # fmt: skip  # a table


def from_json(data: Any, origin: str = "hint file") -> HintFile:
    """Checked HintFile from JSON data."""
    if not isinstance(data, dict) or data.get("schema") != HINTS_SCHEMA:
        raise InputError(f"{origin} is not a hint file ({HINTS_SCHEMA})", "See `tracehint hints`.")
    most = limit("hint-rules")
    check("hint-rules", origin, len(entries(data, "rules", dict, sys.maxsize)))
    rules = entries(data, "rules", dict, most)
    refused = entries(data, "refused", dict, 10 * most)
    _check_texts(data)
    checked = tuple(_rule(raw) for raw in rules)
    if len({rule.id for rule in checked}) != len(checked):
        raise InputError(f"{origin} names a rule twice", "Write it again with `tracehint hints`.")
    return HintFile(
        learned_from=tuple(entries(data, "learned_from", dict, 10_000)),
        parameters=_parameters(get(data, "parameters", dict)),
        rules=checked,
        refused=tuple(_refusal(raw) for raw in refused),
        peeks=tuple(_pair(raw) for raw in entries(data, "peeks", list, MAX_TYPES)),
        plan=plan_from_json(get(data, "plan", dict), origin) if "plan" in data else None,
        directories=folders_from_json(data),
        makers=_makers(entries(data, "makers", dict, MAX_TYPES)),
    )


def _parameters(raw: dict[str, Any]) -> dict[str, Any]:
    """What the rules were learned with; values are capped by its `nodes`."""
    nodes = raw.get("nodes", 1)
    if type(nodes) is not int or not 1 <= nodes <= MAX_NODES:
        raise bad(f"'nodes' is no number of nodes from 1 to {MAX_NODES:,}")
    if not isinstance(raw.get("nodes_given", False), bool):
        raise bad("'nodes_given' is neither true nor false")
    return raw


def _check_texts(data: Any) -> None:
    """Raises InputError for half a character (a lone surrogate): no name holds it."""
    todo = [data]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += value.keys()
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise bad(f"a text with half a character: {value[:80]!r}") from None


def _pair(raw: list[Any]) -> tuple[str, str]:
    if len(raw) != 2 or not all(isinstance(t, str) and len(t) <= MAX_TEXT for t in raw):
        raise bad("'peeks' has an entry that is no pair of types")
    return raw[0], raw[1]


def _makers(raw: list[dict[str, Any]]) -> tuple[Maker, ...]:
    makers = tuple(
        Maker(get(one, "word", str), get(one, "type", str), get(one, "sure", bool)) for one in raw
    )
    if len({maker.word for maker in makers}) != len(makers):
        raise bad("'makers' has a word twice")
    for maker in makers:
        if not 0 < len(to_bytes(maker.word)) <= MAX_WORD or len(maker.type) > MAX_TEXT:
            raise bad(f"a maker {maker.word[:80]!r} that is no word of a process")
    return makers


def _hint(data: dict[str, Any]) -> Hint:
    hint = Hint(
        name=get(data, "name", str),
        value=get(data, "value", str),
        when=get(data, "when", str),
        formula=_formula(get(data, "formula", dict)),
        level=get(data, "level", str),
    )
    if not valid(hint.name, hint.value):
        raise bad(f"{hint.name[:80]!r}={hint.value[:80]!r} is no known hint")
    if hint.formula.get("fn") in ("replicas", "region") and not hint.value.isdigit():
        raise bad(f"{hint.name[:80]!r}={hint.value[:80]!r} is no number for a formula to replace")
    if hint.when not in WHEN or hint.level not in LEVELS:
        raise bad(f"unknown time or level of hint {hint.name!r}")
    return hint


def _formula(data: dict[str, Any]) -> dict[str, Any]:
    if not data:
        return {}
    fields = FORMULAS.get(get(data, "fn", str))
    if fields is None or not set(data) <= fields:
        raise bad(f"unknown formula {str(data)[:80]}")
    if min(entries(data, "captures", int, 48), default=0) < 0:
        raise bad("a formula with a negative placeholder number")
    if "per" in data and not 1e-3 <= get(data, "per", (int, float)) < 1e9:
        raise bad(f"formula with per = {data['per']}")
    if "step" in data and not 0 < get(data, "step", int) < 1 << 62:
        raise bad(f"formula with step = {data['step']}")
    for term in entries(data, "counts", list, 32):
        if len(term) != 3 or not isinstance(term[0], str) or not all(map(_positive, term[1:])):
            raise bad("a formula with a count that is no template and two numbers")
        parse(term[0])
    if not isinstance(data.get("letters", True), bool):
        raise bad("a formula with letters that is neither true nor false")
    for key in ("prefix", "by"):
        if key in data:
            get(data, key, str)
    return data


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12


def _conditions(data: dict[str, Any]) -> dict[str, Any]:
    for key in data:
        if key not in CONDITIONS:
            raise bad(f"unknown condition {key[:80]!r}")
        get(data, key, CONDITIONS[key])
    for text in entries(data, "beside", str, 16):
        if [part for part in parse(text).parts if isinstance(part, str)] != ["name"]:
            raise bad("a name to stand beside has not exactly one {name}")
    if data.get("needs", "use") not in NEEDS:
        raise bad("unknown condition")
    return data


def _evidence(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the evidence; what else somebody wrote there is dropped."""
    kept = {
        key: value
        for key, value in data.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and key.isidentifier()
    }
    if not set(kept) >= NUMBERS:
        raise bad("evidence without " + ", ".join(sorted(NUMBERS - set(kept))))
    return kept


def _per_file(data: dict[str, Any]) -> dict[str, dict[str, str]]:
    if len(data) > MAX_PER_FILE:
        raise bad("per_file is too long")
    for values in data.values():
        if not isinstance(values, dict):
            raise bad("per_file has an entry of the wrong type")
        for name, value in values.items():
            if not isinstance(value, str) or not valid(name, value):
                raise bad(f"per_file has an unknown hint {name[:80]!r}")
    return data


def _rule(data: dict[str, Any]) -> Rule:
    text = get(data, "template", str)
    template = parse(text)
    if get(data, "regex", str) != template.regex:
        raise bad(f"the regex of {text[:80]!r} is not the one that its template gives")
    exclude = tuple(entries(data, "exclude", str, MAX_EXCLUDE))
    for other in exclude:
        parse(other)
    producer = data.get("producer")
    confidence = float(get(data, "confidence", (int, float)))
    if not (producer is None or isinstance(producer, str)) or not 0 <= confidence <= 1:
        raise bad(f"producer or confidence of {text[:80]!r}")
    return Rule(
        id=get(data, "id", str),
        template=text,
        regex=template.regex,
        directory=get(data, "directory", str),
        producer=producer,
        consumers=tuple(entries(data, "consumers", str, MAX_TYPES)),
        pattern=get(data, "pattern", str),
        hints=tuple(_hint(raw) for raw in entries(data, "hints", dict, MAX_HINTS)),
        confidence=confidence,
        evidence=_evidence(get(data, "evidence", dict)),
        conditions=_conditions(get(data, "conditions", dict)),
        exclude=exclude,
        examples=tuple(entries(data, "examples", str, 5)),
        per_file=_per_file(get(data, "per_file", dict)),
        producers=tuple(entries(data, "producers", str, MAX_TYPES)),
        uses=tuple(entries(data, "uses", str, 16)),
        variants=tuple(_variant(raw) for raw in entries(data, "variants", dict, 16)),
        made_by=tuple(entries(data, "made_by", str, MAX_TYPES)),
    )


def _variant(data: dict[str, Any]) -> Variant:
    return Variant(
        use=get(data, "use", str),
        pattern=get(data, "pattern", str),
        hints=tuple(_hint(raw) for raw in entries(data, "hints", dict, MAX_HINTS)),
        learned=get(data, "learned", bool),
    )


def _refusal(data: dict[str, Any]) -> Refusal:
    return Refusal(
        template=get(data, "template", str),
        pattern=get(data, "pattern", str),
        reason=get(data, "reason", str),
        text=get(data, "text", str),
        files=get(data, "files", int),
        bytes=get(data, "bytes", int),
    )
