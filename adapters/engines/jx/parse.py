"""JX tokens as a tree.

As in cctools, operators of one precedence group from the right (`10 - 3 - 2` is 9), `and` binds
less than `or`, and a sign or `not` binds more than any operator between two values.
"""

from __future__ import annotations

from itertools import chain
from typing import NoReturn

from tracehint.adapters.engines.jx.tokens import Token, tokens
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
# operators, those that bind most first
PRECEDENCE = (("*", "/", "%"), ("+", "-"), ("==", "!=", "<", "<=", ">", ">="), ("or",), ("and",))
_BINARY = frozenset(chain.from_iterable(PRECEDENCE))


def parse(text: str) -> Node:
    """The first value of the text; what follows it is ignored, as by cctools. Raises JxError."""
    return _Parser(text).expression()


class _Parser:
    """One token ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next: Token = next(self._tokens)
        self._depth = 0

    def _take(self) -> Token:
        token = self._next
        self._next = next(self._tokens, token)
        return token

    def _accept(self, kind: str) -> bool:
        if self._next.kind != kind:
            return False
        self._take()
        return True

    def _expect(self, kind: str) -> Token:
        if self._next.kind != kind:
            self._fail(f"expected {kind!r}")
        return self._take()

    def _fail(self, what: str) -> NoReturn:
        found = self._next.value if self._next.kind != "end" else "the end"
        raise JxError(f"line {self._next.line}: {what}, found {str(found)[:40]!r}")

    def expression(self) -> Node:
        """A value with operators. A semicolon may follow."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH}")
        line = self._next.line
        operands, operators = [self._operand()], []
        while self._next.kind in _BINARY:
            operators.append(self._take().kind)
            operands.append(self._operand())
        self._accept(";")
        self._depth -= 1
        return _grouped(operands, operators, line)

    def _operand(self) -> Node:
        signs = []
        while self._next.kind in ("not", "-", "+"):
            signs.append(self._take())
        if len(signs) > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} signs")
        value = self._postfix(self._atom())
        for sign in reversed(signs):
            value = _signed(sign, value)
        return value

    def _atom(self) -> Node:
        token = self._next
        if token.kind == "value":
            return self._take().value
        if token.kind == "name":
            self._take()
            return Symbol(token.value, token.line)
        if token.kind == "error":
            self._take()
            self._expect("(")
            self.expression()
            self._expect(")")
            return Failure(token.line)
        if self._accept("("):
            value = self.expression()
            self._expect(")")
            return value
        if self._accept("["):
            return self._array("]")
        if self._accept("{"):
            return self._object()
        return self._fail("expected a value")

    def _postfix(self, value: Node) -> Node:
        for _ in range(MAX_DEPTH):
            line = self._next.line
            if self._next.kind == "(" and isinstance(value, Symbol):
                self._take()
                value = Application(value.name, self._array(")"), line)
            elif self._accept("["):
                value = self._index(value, line)
            elif self._next.kind in ("(", "."):
                self._fail("only names can be called")
            else:
                return value
        return self._fail(f"more than {MAX_DEPTH} indices")

    def _index(self, left: Node, line: int) -> Node:
        begin = ... if self._next.kind == ":" else self.expression()
        if not self._accept(":"):
            self._expect("]")
            return Index(left, begin, line)
        end = ... if self._next.kind == "]" else self.expression()
        self._expect("]")
        return Slice(left, begin, end, line)

    def _array(self, closing: str) -> Array:
        items = []
        while not self._accept(closing):
            value = self.expression()
            items.append((value, self._loops()))
            if self._next.kind != closing:
                self._expect(",")
        return Array(tuple(items))

    def _object(self) -> Object:
        pairs = []
        while not self._accept("}"):
            key = self.expression()
            self._expect(":")
            value = self.expression()
            pairs.append((key, value, self._loops()))
            if self._next.kind != "}":
                self._expect(",")
        return Object(tuple(pairs))

    def _loops(self) -> tuple[For, ...]:
        loops = []
        while self._next.kind == "for":
            line = self._take().line
            name = self._expect("name").value
            self._expect("in")
            elements = self.expression()
            conditional = self._accept("if")
            condition = self.expression() if conditional else None
            loops.append(For(name, elements, condition, conditional, line))
            if len(loops) > MAX_DEPTH:
                self._fail(f"more than {MAX_DEPTH} loops")
        return tuple(loops)


def _signed(sign: Token, value: Node) -> Node:
    """A signed number is a number, anything else an operation."""
    if sign.kind != "not" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return -value if sign.kind == "-" else value
    return Unary(sign.kind, value, sign.line)


def _grouped(operands: list[Node], operators: list[str], line: int) -> Node:
    """One tree of a flat row of values and operators."""
    for level in PRECEDENCE:
        if not operators:
            break
        rows: list[list[Node]] = [[operands[0]]]
        inside: list[list[str]] = [[]]
        between: list[str] = []
        for operator, operand in zip(operators, operands[1:], strict=True):
            if operator in level:
                inside[-1].append(operator)
                rows[-1].append(operand)
            else:
                between.append(operator)
                rows.append([operand])
                inside.append([])
        operands = [
            Chain(tuple(row), tuple(marks), line) if marks else row[0]
            for row, marks in zip(rows, inside, strict=True)
        ]
        operators = between
    return operands[0]
