"""The variables of a classic Makeflow file."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping

from tracehint.limits import exceeded, limit

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


class Variables:
    """Those of the file and of one rule, with a bound on the text that they make: a variable of
    two others, and so on for thirty lines, is longer than the memory."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.of_file: dict[str, str] = dict(environment)
        self.of_rule: dict[str, str] = {}
        self.all: Mapping[str, str] = ChainMap(self.of_rule, self.of_file)
        self._left = limit("substituted-bytes")

    def _counted(self, value: str) -> str:
        self._left -= len(value)
        if self._left < 0:
            raise exceeded("substituted-bytes", "the Makeflow file: its variables make text")
        return value

    def assign(self, found: re.Match[str]) -> None:
        """`NAME=value`, `NAME+=value` of the file."""
        name, value = found[2], self.put_in(found[4].rstrip(), self.of_file)
        if found[3] == "+=" and name in self.of_file:
            value = f"{self._counted(self.of_file[name])} {value}"
        self.of_file[name] = value

    def put_in(self, text: str, known: Mapping[str, str]) -> str:
        """Substitute variables outside single quotes; unknown ones become nothing."""
        out: list[str] = []
        at = 0
        quoted = False
        while at < len(text):
            char = text[at]
            if char == "'":
                quoted = not quoted
            elif char == "\\" and not quoted:
                out.append(text[at : at + 2])
                at += 2
                continue
            elif char == "$" and not quoted and (found := _VARIABLE.match(text, at)) is not None:
                out.append(self._counted(known.get(found[1] or found[2], "")))
                at = found.end()
                continue
            out.append(char)
            at += 1
        return "".join(out)
