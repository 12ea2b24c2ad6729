"""Arrays out of a JSON file of any size, one item at a time.

The containers on the way to the wanted arrays are walked by hand; everything else is decoded by
the standard library, an item at a time. Memory follows the largest item, not the file.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from tracehint.limits import check, values_of

CHUNK = 4 << 20
_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR_END = re.compile(r"[\s,\]}]")


class JsonStreamError(ValueError):
    """The text is not JSON, or an item is too large."""


class JsonStream:
    """Walks one JSON document. `arrays` and `objects` are dotted paths: of each item of an array
    one event, into the objects it descends; any other value is one event."""

    def __init__(self, stream: IO[bytes], arrays: frozenset[str], objects: frozenset[str]) -> None:
        self._stream, self._arrays, self._objects = stream, arrays, objects
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._text, self._at, self._ended = "", 0, False
        self._checked = False  # whether the values of this text were counted

    def events(self) -> Iterator[tuple[str, Any]]:
        """(path, value) in the order of the file. Raises JsonStreamError."""
        yield from self._value("")

    def _more(self) -> bool:
        if self._ended:
            return False
        chunk = self._stream.read(CHUNK)
        self._ended = not chunk
        self._text = self._text[self._at :] + self._utf8.decode(chunk, final=self._ended)
        self._at, self._checked = 0, False
        check("item-bytes", "an item", len(self._text) - CHUNK)
        return True

    def _peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _expect(self, char: str) -> None:
        found = self._peek()
        if found != char:
            raise JsonStreamError(f"expected {char!r}, found {found!r}")
        self._at += 1

    def _decode(self) -> Any:
        """One whole value; more text is read until it is complete."""
        first = self._peek()
        want = len(self._text)
        while True:
            self._check_values()
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise JsonStreamError("nested too deeply") from None
            except ValueError as error:
                if not self._ended and self._grow(want):
                    want = len(self._text) * 2
                    continue
                raise JsonStreamError(f"not JSON: {error}") from None
            # a number may go on in the next chunk: it ends where a blank or a bracket follows
            if first in '{["tfn' or _SCALAR_END.match(self._text, end) or not self._more():
                self._at = end
                return value

    def _check_values(self) -> None:
        """Once per text: what follows the first item in it is less."""
        if not self._checked and len(self._text) - self._at > CHUNK:  # else it cannot be too many
            check("json-values", "an item", values_of(self._text[self._at :]) - CHUNK)
            self._checked = True

    def _grow(self, want: int) -> bool:
        """Read on; twice as much each time, so that a large item is decoded few times."""
        grown = False
        while not self._ended and (not grown or len(self._text) - self._at < want):
            grown = self._more()
        return grown

    def _value(self, path: str) -> Iterator[tuple[str, Any]]:
        first = self._peek()
        if first == "{" and (path in self._objects or not path):
            yield from self._object(path)
        elif first == "[" and path in self._arrays:
            yield from self._array(path)
        else:
            yield path, self._decode()

    def _object(self, path: str) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            key = self._decode()
            if not isinstance(key, str):
                raise JsonStreamError("a key is not text")
            self._expect(":")
            yield from self._value(f"{path}.{key}" if path else key)
            if self._peek() == "}":
                self._at += 1
                return
            self._expect(",")

    def _array(self, path: str) -> Iterator[tuple[str, Any]]:
        self._expect("[")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield path, self._decode()
            if self._peek() == "]":
                self._at += 1
                return
            self._expect(",")
