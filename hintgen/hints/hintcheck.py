"""A hint file's JSON as records, checked field by field.

A hint file is untrusted: counts are limited, unknown hints and values are
refused, templates are parsed (hintgen/hints/template.py) and the regexes in the file
must be the ones that the templates give, so none of its own is ever run.
"""

from __future__ import annotations

import sys
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.formulas import FORMULAS
from tracehint.hintgen.hints.model import HINTS_SCHEMA, Hint, HintFile, Refusal, Rule, Variant
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.hints.vocabulary import valid
from tracehint.limits import check, limit

MAX_EXCLUDE = 64
MAX_HINTS = 16
MAX_TYPES = 10_000
MAX_PER_FILE = 100_000
MAX_TEXT = 16_384
MAX_NODES = 1_000_000
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
    check("hint-rules", origin, len(_list(data, "rules", dict, sys.maxsize)))
    rules = _list(data, "rules", dict, most)
    refused = _list(data, "refused", dict, 10 * most)
    _check_texts(data)
    checked = tuple(_rule(raw) for raw in rules)
    if len({rule.id for rule in checked}) != len(checked):
        raise InputError(f"{origin} names a rule twice", "Write it again with `tracehint hints`.")
    return HintFile(
        learned_from=tuple(_list(data, "learned_from", dict, 10_000)),
        parameters=_parameters(_get(data, "parameters", dict)),
        rules=checked,
        refused=tuple(_refusal(raw) for raw in refused),
        peeks=tuple(_pair(raw) for raw in _list(data, "peeks", list, MAX_TYPES)),
    )


def _parameters(raw: dict[str, Any]) -> dict[str, Any]:
    """What the rules were learned with; values are capped by its `nodes`."""
    nodes = raw.get("nodes", 1)
    if type(nodes) is not int or not 1 <= nodes <= MAX_NODES:
        raise _bad(f"'nodes' is no number of nodes from 1 to {MAX_NODES:,}")
    if not isinstance(raw.get("nodes_given", False), bool):
        raise _bad("'nodes_given' is neither true nor false")
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
                raise _bad(f"a text with half a character: {value[:80]!r}") from None


def _pair(raw: list[Any]) -> tuple[str, str]:
    if len(raw) != 2 or not all(isinstance(t, str) and len(t) <= MAX_TEXT for t in raw):
        raise _bad("'peeks' has an entry that is no pair of types")
    return raw[0], raw[1]


def _bad(what: str) -> InputError:
    return InputError(f"hint file: {what}", "Write it again with `tracehint hints`.")


def _get(data: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    value = data.get(key)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _bad(f"{key!r} is missing or of the wrong type")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise _bad(f"{key!r} is too long")
    return value


def _list(data: dict[str, Any], key: str, kind: type, limit: int) -> list[Any]:
    values = data.get(key, [])
    if not isinstance(values, list) or len(values) > limit:
        raise _bad(f"{key!r} is no list of at most {limit} entries")
    for value in values:
        if not isinstance(value, kind) or (isinstance(value, str) and len(value) > MAX_TEXT):
            raise _bad(f"{key!r} has an entry of the wrong type or length")
    return values


def _hint(data: dict[str, Any]) -> Hint:
    hint = Hint(
        name=_get(data, "name", str),
        value=_get(data, "value", str),
        when=_get(data, "when", str),
        formula=_formula(_get(data, "formula", dict)),
        level=_get(data, "level", str),
    )
    if not valid(hint.name, hint.value):
        raise _bad(f"{hint.name[:80]!r}={hint.value[:80]!r} is no known hint")
    if hint.formula.get("fn") in ("replicas", "region") and not hint.value.isdigit():
        raise _bad(f"{hint.name[:80]!r}={hint.value[:80]!r} is no number for a formula to replace")
    if hint.when not in WHEN or hint.level not in LEVELS:
        raise _bad(f"unknown time or level of hint {hint.name!r}")
    return hint


def _formula(data: dict[str, Any]) -> dict[str, Any]:
    if not data:
        return {}
    fields = FORMULAS.get(_get(data, "fn", str))
    if fields is None or not set(data) <= fields:
        raise _bad(f"unknown formula {str(data)[:80]}")
    if min(_list(data, "captures", int, 48), default=0) < 0:
        raise _bad("a formula with a negative placeholder number")
    if "per" in data and not 1e-3 <= _get(data, "per", (int, float)) < 1e9:
        raise _bad(f"formula with per = {data['per']}")
    if "step" in data and not 0 < _get(data, "step", int) < 1 << 62:
        raise _bad(f"formula with step = {data['step']}")
    for term in _list(data, "counts", list, 32):
        if len(term) != 3 or not isinstance(term[0], str) or not all(map(_positive, term[1:])):
            raise _bad("a formula with a count that is no template and two numbers")
        parse(term[0])
    if not isinstance(data.get("letters", True), bool):
        raise _bad("a formula with letters that is neither true nor false")
    for key in ("prefix", "by"):
        if key in data:
            _get(data, key, str)
    return data


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12


def _conditions(data: dict[str, Any]) -> dict[str, Any]:
    for key in data:
        if key not in CONDITIONS:
            raise _bad(f"unknown condition {key[:80]!r}")
        _get(data, key, CONDITIONS[key])
    for text in _list(data, "beside", str, 16):
        if [part for part in parse(text).parts if isinstance(part, str)] != ["name"]:
            raise _bad("a name to stand beside has not exactly one {name}")
    if data.get("needs", "use") not in NEEDS:
        raise _bad("unknown condition")
    return data


def _evidence(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the evidence; what else somebody wrote there is dropped."""
    kept = {
        key: value
        for key, value in data.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and key.isidentifier()
    }
    if not set(kept) >= NUMBERS:
        raise _bad("evidence without " + ", ".join(sorted(NUMBERS - set(kept))))
    return kept


def _per_file(data: dict[str, Any]) -> dict[str, dict[str, str]]:
    if len(data) > MAX_PER_FILE:
        raise _bad("per_file is too long")
    for values in data.values():
        if not isinstance(values, dict):
            raise _bad("per_file has an entry of the wrong type")
        for name, value in values.items():
            if not isinstance(value, str) or not valid(name, value):
                raise _bad(f"per_file has an unknown hint {name[:80]!r}")
    return data


def _rule(data: dict[str, Any]) -> Rule:
    text = _get(data, "template", str)
    template = parse(text)
    if _get(data, "regex", str) != template.regex:
        raise _bad(f"the regex of {text[:80]!r} is not the one that its template gives")
    exclude = tuple(_list(data, "exclude", str, MAX_EXCLUDE))
    for other in exclude:
        parse(other)
    producer = data.get("producer")
    confidence = float(_get(data, "confidence", (int, float)))
    if not (producer is None or isinstance(producer, str)) or not 0 <= confidence <= 1:
        raise _bad(f"producer or confidence of {text[:80]!r}")
    return Rule(
        id=_get(data, "id", str),
        template=text,
        regex=template.regex,
        directory=_get(data, "directory", str),
        producer=producer,
        consumers=tuple(_list(data, "consumers", str, MAX_TYPES)),
        pattern=_get(data, "pattern", str),
        hints=tuple(_hint(raw) for raw in _list(data, "hints", dict, MAX_HINTS)),
        confidence=confidence,
        evidence=_evidence(_get(data, "evidence", dict)),
        conditions=_conditions(_get(data, "conditions", dict)),
        exclude=exclude,
        examples=tuple(_list(data, "examples", str, 5)),
        per_file=_per_file(_get(data, "per_file", dict)),
        producers=tuple(_list(data, "producers", str, MAX_TYPES)),
        uses=tuple(_list(data, "uses", str, 16)),
        variants=tuple(_variant(raw) for raw in _list(data, "variants", dict, 16)),
    )


def _variant(data: dict[str, Any]) -> Variant:
    return Variant(
        use=_get(data, "use", str),
        pattern=_get(data, "pattern", str),
        hints=tuple(_hint(raw) for raw in _list(data, "hints", dict, MAX_HINTS)),
        learned=_get(data, "learned", bool),
    )


def _refusal(data: dict[str, Any]) -> Refusal:
    return Refusal(
        template=_get(data, "template", str),
        pattern=_get(data, "pattern", str),
        reason=_get(data, "reason", str),
        text=_get(data, "text", str),
        files=_get(data, "files", int),
        bytes=_get(data, "bytes", int),
    )
