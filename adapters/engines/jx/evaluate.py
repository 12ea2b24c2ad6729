"""The value of a JX tree, with a bound on the work that it may cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.jx.functions import FUNCTIONS, LAZY
from tracehint.adapters.engines.jx.operators import binary, kind, unary
from tracehint.adapters.engines.jx.scope import Scope
from tracehint.adapters.engines.jx.tree import (
    Application,
    Array,
    Chain,
    Failure,
    For,
    Index,
    JxError,
    Node,
    Object,
    Slice,
    Symbol,
    Unary,
)

MAX_DEPTH = 100
_CHARACTERS = 32  # of a new text, for one step


class Evaluator:
    """Evaluates one document. Lists and objects that it returns are never changed afterwards."""

    def __init__(self, folder: Path | None, steps: int) -> None:
        self.folder, self._left, self._depth = folder, steps, 0
        self._how: dict[type, Callable[[Any, Scope], Any]] = {
            Symbol: self._symbol, Chain: self._chain, Unary: self._unary, Application: self._call,
            Index: self._index, Slice: self._slice, Array: self._array, Object: self._object,
            Failure: self._failure, list: self._plain, dict: self._plain,
        }  # fmt: skip  # a table

    def document(self, tree: Node) -> Any:
        """The value of a whole document; its `define` object gives names to all of it."""
        names: dict[str, Node] = {}
        for key, value, _ in tree.pairs if isinstance(tree, Object) else ():
            if key == "define" and isinstance(value, Object):
                for name, node, _ in value.pairs:
                    if isinstance(name, str):
                        names.setdefault(name, node)
                break
        return self.value(tree, Scope(names))

    def spend(self, steps: int = 1) -> None:
        """Count work. Raises JxError when it is too much."""
        self._left -= steps
        if self._left < 0:
            raise JxError("more evaluation steps than allowed (limit jx-steps)")

    def spend_text(self, length: int) -> None:
        """Count a new text of so many characters."""
        self.spend(1 + length // _CHARACTERS)

    def value(self, node: Node, scope: Scope) -> Any:
        """The value of a tree. Raises JxError."""
        self.spend()
        how = self._how.get(type(node))
        if how is None:
            return node
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise JxError(f"nested deeper than {MAX_DEPTH}, or a name that needs itself")
        try:
            return how(node, scope)
        finally:
            self._depth -= 1

    def _plain(self, value: Any, _scope: Scope) -> Any:
        """An evaluated value is used once more: it costs what a copy would."""
        todo = [value]
        while todo:
            inner = todo.pop()
            self.spend(len(inner))
            parts = inner.values() if isinstance(inner, dict) else inner
            todo.extend(v for v in parts if isinstance(v, (list, dict)))
        return value

    def _symbol(self, node: Symbol, scope: Scope) -> Any:
        known, value = scope.find(node.name)
        if not known:
            raise JxError(f"line {node.line}: {node.name}: undefined symbol")
        return self.value(value, scope)

    def _chain(self, node: Chain, scope: Scope) -> Any:
        result = self.value(node.operands[-1], scope)
        pairs = zip(reversed(node.operators), reversed(node.operands[:-1]), strict=True)
        for mark, operand in pairs:
            left = self.value(operand, scope)
            if mark == "+" and isinstance(left, list) and isinstance(result, list):
                self.spend(len(left) + len(result))
            elif mark == "+" and (isinstance(left, str) or isinstance(result, str)):
                self.spend_text(sum(len(v) for v in (left, result) if isinstance(v, str)))
            result = self._placed(node.line, binary, mark, left, result)
        return result

    def _unary(self, node: Unary, scope: Scope) -> Any:
        return self._placed(node.line, unary, node.operator, self.value(node.operand, scope))

    def _placed(self, line: int, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except JxError as error:
            raise JxError(f"line {line}: {error}") from None

    def _failure(self, node: Failure, _scope: Scope) -> Any:
        raise JxError(f"line {node.line}: the document says error()")

    def _call(self, node: Application, scope: Scope) -> Any:
        lazy = LAZY.get(node.name)
        if lazy is not None:
            if any(loops for _, loops in node.arguments.items):
                raise JxError(f"line {node.line}: {node.name}() takes no loops")
            arguments = [item for item, _ in node.arguments.items]
            return self._placed(node.line, lazy, self, scope, arguments)
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise JxError(f"line {node.line}: {node.name}(): unknown function")
        values = self._array(node.arguments, scope)
        return self._placed(node.line, function, self, scope, values)

    def _index(self, node: Index, scope: Scope) -> Any:
        at, left = self.value(node.at, scope), self.value(node.left, scope)
        if isinstance(left, dict) and isinstance(at, str):
            if at in left:
                return self.value(left[at], scope)
            raise JxError(f"line {node.line}: no key {at[:80]!r}")
        if isinstance(left, list) and kind(at) == "integer":
            if -len(left) <= at < len(left):
                return self.value(left[at], scope)
            raise JxError(f"line {node.line}: index {at} is out of range")
        raise JxError(f"line {node.line}: {kind(left)}[{kind(at)}]")

    def _slice(self, node: Slice, scope: Scope) -> Any:
        ends = [n if n is ... else self.value(n, scope) for n in (node.end, node.begin)]
        left = self.value(node.left, scope)
        if not isinstance(left, list) or not all(e is ... or kind(e) == "integer" for e in ends):
            raise JxError(f"line {node.line}: only arrays have slices, between integers")
        end, begin = ends
        count = len(left)
        begin = 0 if begin is ... else begin + count if begin < 0 else begin
        end = count if end is ... else end + count if end < 0 else end
        self.spend(count)
        return [left[i] for i in range(max(0, begin), min(end, count))]

    def _array(self, node: Array, scope: Scope) -> list[Any]:
        out: list[Any] = []
        for item, loops in node.items:
            if loops:
                out.extend(self.value(item, inner) for inner in self._scopes(loops, 0, scope))
            else:
                out.append(self.value(item, scope))
        return out

    def _object(self, node: Object, scope: Scope) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value, loops in node.pairs:
            for inner in self._scopes(loops, 0, scope) if loops else (scope,):
                name = self.value(key, inner)
                if not isinstance(name, str):
                    raise JxError(f"a key is a {kind(name)}, not a string")
                made = self.value(value, inner)
                out.setdefault(name, made)
        return out

    def _scopes(self, loops: tuple[For, ...], at: int, scope: Scope) -> Iterator[Scope]:
        """The names of each round of nested loops."""
        loop = loops[at]
        elements = self.value(loop.elements, scope)
        if not isinstance(elements, list):
            raise JxError(f"line {loop.line}: a loop over a {kind(elements)}, not an array")
        for element in elements:
            self.spend()
            inner = Scope({loop.variable: element}, scope)
            if loop.has_condition:
                wanted = self.value(loop.condition, inner)
                if not isinstance(wanted, bool):
                    raise JxError(f"line {loop.line}: the condition is a {kind(wanted)}")
                if not wanted:
                    continue
            if at + 1 < len(loops):
                yield from self._scopes(loops, at + 1, inner)
            else:
                yield inner
