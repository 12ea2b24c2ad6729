"""JX's functions. To add one: a function here and a line in FUNCTIONS or LAZY."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Callable
from typing import Any

from tracehint.adapters.engines.jx.operators import kind, text_of
from tracehint.adapters.engines.jx.scope import Evaluation, Scope
from tracehint.adapters.engines.jx.tree import JxError, Node

_MAX_NAMES = 100_000
_PLACE = re.compile(r"\{\{|\}\}|\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}|[{}]")
_FORMAT = re.compile(r"%(.?)", re.DOTALL)
_INTEGER, _DOUBLE = "di", "eEfFgG"


def _check(values: list[Any], *kinds: str, optional: int = 0) -> None:
    """Types of arguments; the last `optional` ones may be missing."""
    found = [kind(v) for v in values]
    if found != list(kinds[: len(found)]) or len(found) < len(kinds) - optional:
        raise JxError(f"the arguments are ({', '.join(found)}), not ({', '.join(kinds)})")


def _range(run: Evaluation, _scope: Scope, values: list[Any]) -> list[int]:
    _check(values, "integer", "integer", "integer", optional=2)
    bounds = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    if bounds[2] == 0:
        raise JxError("the step is 0")
    numbers = range(*bounds)
    run.spend(min(len(numbers), 1 << 62))
    return list(numbers)


def _format(run: Evaluation, _scope: Scope, values: list[Any]) -> str:
    if not values or not isinstance(values[0], str):
        raise JxError("the format is not a string")
    rest = values[:0:-1]

    def one(found: re.Match[str]) -> str:
        how = found[1]
        if how == "%":
            return "%"
        if not how or not rest:
            raise JxError("the format needs more arguments")
        value = rest.pop()
        if how in _INTEGER and kind(value) == "integer":
            return str(value)
        if how in _DOUBLE and kind(value) == "double":
            return str(f"%{how}" % value)
        if how == "s" and isinstance(value, str):
            return value
        raise JxError(f"%{how} of a {kind(value)}")

    run.spend_text(sum(len(v) for v in values if isinstance(v, str)))
    text = _FORMAT.sub(one, values[0])
    if rest:
        raise JxError("more arguments than the format has places")
    return text


def _join(run: Evaluation, _scope: Scope, values: list[Any]) -> str:
    _check(values, "array", "string", optional=1)
    parts, between = values[0], values[1] if len(values) == 2 else " "
    if not all(isinstance(p, str) for p in parts):
        raise JxError("an item is not a string")
    run.spend_text(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _rounded(how: Callable[[float], int]) -> Callable[..., Any]:
    def function(_run: Evaluation, _scope: Scope, values: list[Any]) -> int | float:
        if len(values) != 1 or kind(values[0]) not in ("integer", "double"):
            raise JxError("one number is needed")
        value = values[0]
        return value if isinstance(value, int) or not math.isfinite(value) else float(how(value))

    return function


def _basename(_run: Evaluation, _scope: Scope, values: list[Any]) -> str:
    _check(values, "string", "string", optional=1)
    path = values[0].rstrip("/") or values[0][:1]
    name: str = "." if not path else path if path == "/" else posixpath.basename(path)
    return name.removesuffix(values[1]) if len(values) == 2 else name


def _dirname(_run: Evaluation, _scope: Scope, values: list[Any]) -> str:
    _check(values, "string")
    path = values[0].rstrip("/")
    if not path:
        return "/" if values[0] else "."
    head, slash, _ = path.rpartition("/")
    if not slash:
        return "."
    return head.rstrip("/") or "/"


def _listdir(run: Evaluation, _scope: Scope, values: list[Any]) -> list[str]:
    _check(values, "string")
    if run.folder is None:
        raise JxError("directories are not read here")
    top = run.folder.resolve()
    try:
        folder = (top / values[0]).resolve()
        if not folder.is_relative_to(top):
            raise JxError(f"{values[0][:200]!r} is not below the directory of the file")
        names = os.listdir(folder)  # noqa: PTH208 (names in the order of the file system)
    except (OSError, ValueError) as error:
        raise JxError(f"{values[0][:200]!r} cannot be listed: {error}") from None
    if len(names) > _MAX_NAMES:
        raise JxError(f"{values[0][:200]!r} has more than {_MAX_NAMES:,} names")
    run.spend(len(names))
    return names


def _escape(run: Evaluation, _scope: Scope, values: list[Any]) -> str:
    _check(values, "string")
    run.spend_text(2 * len(values[0]))
    return '"' + re.sub(r'(["\\$`])', r"\\\1", values[0]) + '"'


def _template(run: Evaluation, scope: Scope, values: list[Any]) -> str:
    """Names in braces. Those of the second argument come first; others must be plain values."""
    _check(values, "string", "object", optional=1)
    own = values[1] if len(values) == 2 else {}

    def one(found: re.Match[str]) -> str:
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[1] is None:
            raise JxError(f"unmatched {found[0]} in a template")
        known, value = (True, own[found[1]]) if found[1] in own else scope.find(found[1])
        if not known:
            raise JxError(f"{found[1]}: undefined symbol in a template")
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise JxError(f"{found[1]} is neither a number nor a string")
        text = value if isinstance(value, str) else text_of(value)
        run.spend_text(len(text))
        return text

    run.spend_text(len(values[0]))
    return _PLACE.sub(one, values[0])


def _len(_run: Evaluation, _scope: Scope, values: list[Any]) -> int:
    if not values or not isinstance(values[0], list):
        raise JxError("the argument is not an array")
    return len(values[0])


def _keys(run: Evaluation, _scope: Scope, values: list[Any]) -> list[str]:
    _check(values, "object")
    run.spend(len(values[0]))
    return list(values[0])[::-1]


def _values(run: Evaluation, _scope: Scope, values: list[Any]) -> list[Any]:
    _check(values, "object")
    run.spend(len(values[0]))
    return list(values[0].values())[::-1]


def _items(run: Evaluation, _scope: Scope, values: list[Any]) -> list[list[Any]]:
    _check(values, "object")
    run.spend(3 * len(values[0]))
    return [list(pair) for pair in values[0].items()][::-1]


def _like(run: Evaluation, _scope: Scope, values: list[Any]) -> bool:
    """like(pattern, text). Matched by RE2, whose time is linear whatever the pattern."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _check(values, "string", "string")
    run.spend_text(len(values[0]) * 32 + len(values[1]))
    try:
        found = pc.match_substring_regex(pa.scalar(values[1]), pattern=values[0])
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise JxError(f"not a pattern: {str(error)[:200]}") from None
    return bool(found.as_py())


def _fetch(_run: Evaluation, _scope: Scope, _values: list[Any]) -> Any:
    raise JxError("fetch() is not done: a workflow's text must not make this program read more")


def _schema(run: Evaluation, _scope: Scope, values: list[Any]) -> dict[str, str]:
    _check(values, "array")
    found: dict[str, str] = {}
    for item in values[0]:
        run.spend(1 + (len(item) if isinstance(item, dict) else 0))
        for key, value in item.items() if isinstance(item, dict) else ():
            found.setdefault(key, kind(value))
    return dict(reversed(found.items()))


def _each(run: Evaluation, scope: Scope, nodes: list[Node]) -> list[tuple[dict[str, Any], Any]]:
    """The objects of the second argument, each with the first evaluated among its names."""
    if len(nodes) != 2:
        raise JxError("two arguments are needed")
    rows = run.value(nodes[1], scope)
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        raise JxError("the second argument is not an array of objects")
    return [(row, run.value(nodes[0], Scope(row, scope))) for row in rows]


def _select(run: Evaluation, scope: Scope, nodes: list[Node]) -> list[Any]:
    pairs = _each(run, scope, nodes)
    if not all(isinstance(wanted, bool) for _, wanted in pairs):
        raise JxError("the first argument is not true or false")
    return [row for row, wanted in pairs if wanted]


def _project(run: Evaluation, scope: Scope, nodes: list[Node]) -> list[Any]:
    return [value for _, value in _each(run, scope, nodes)]


Function = Callable[[Evaluation, Scope, list[Any]], Any]
FUNCTIONS: dict[str, Function] = {
    "range": _range, "format": _format, "join": _join, "ceil": _rounded(math.ceil),
    "floor": _rounded(math.floor), "basename": _basename, "dirname": _dirname,
    "listdir": _listdir, "escape": _escape, "template": _template, "len": _len, "keys": _keys,
    "values": _values, "items": _items, "like": _like, "fetch": _fetch, "schema": _schema,
}  # fmt: skip  # a table
# Those whose first argument is evaluated once per object of the second.
LAZY: dict[str, Function] = {"select": _select, "project": _project}
