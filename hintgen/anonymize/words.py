"""Words to other words: the same one always to the same one, and no two to one.

Kept: punctuation, white space, runs of digits (counters), endings of file
names, options of one letter, and the vocabulary. Everything else made of
letters becomes eight letters that follow from a secret key, of an alphabet in which no text that
`schemas/redact` looks for can be spelt: new words are never suspicious.
"""

from __future__ import annotations

import hmac
import re

from tracehint.hintgen.anonymize.vocabulary import MAX_EXTENSION, WORDS

_TOKEN = re.compile(rb"[A-Za-z0-9\x80-\xff]+")
_PARTS = re.compile(rb"[0-9]+|[A-Za-z\x80-\xff]+")
_LETTERS = "bcfgijklmnqruvwxyz"  # without a d e h o p s t: `pass`, `token`, `key` need one of them
_LENGTH = 8
_ENDS = b"/ \t\n'\":;,)]}>|&"
_REMEMBERED = 200_000  # components of paths
_MAX_PARTS = 5  # more changes between letters and digits are a hash, not a counter
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_WITH_DIGITS = {
    word.encode().translate(_ZEROS) for word in WORDS if not (word.isalpha() or word.isdigit())
}


class Pseudonyms:
    """The mapping of one anonymised bundle; without `key` nobody can repeat it."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._known: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()
        self._components: dict[bytes, bytes] = {}

    def replace(self, raw: bytes) -> bytes:
        """The text with its words replaced.

        >>> changed = Pseudonyms(b"k").replace(b"/usr/bin/make -f secret p_012.fits")
        >>> changed.startswith(b"/usr/bin/make -f "), changed.endswith(b"_012.fits")
        (True, True)
        >>> b"secret" in changed
        False
        """
        first, *rest = raw.split(b"/")
        done = self._components
        parts = [done.get(part) or self._component(part) for part in rest]
        return b"".join((self._changed(first), *parts))

    @staticmethod
    def reads_digits(layout: bytes) -> bool:
        """Whether what becomes of a text may follow from its digits; `layout`: with each as 0.

        >>> [Pseudonyms.reads_digits(text) for text in (b"run00/p_000.fits", b"/usr/lib00/a0b0c0d")]
        [False, True]
        """
        return any(
            token.lower() in _WITH_DIGITS or len(_PARTS.findall(token)) > _MAX_PARTS
            for token in _TOKEN.findall(layout)
        )

    def _component(self, part: bytes) -> bytes:
        """A slash and what follows it, up to the next one: it does not depend on what is around
        it, and most directories are in many paths."""
        if len(self._components) >= _REMEMBERED:
            self._components.clear()
        found = self._components[part] = self._changed(b"/" + part)
        return found

    def _changed(self, raw: bytes) -> bytes:
        return _TOKEN.sub(lambda match: self._token(match, raw), raw)

    def _token(self, match: re.Match[bytes], raw: bytes) -> bytes:
        token, start, end = match[0], match.start(), match.end()
        if token.isdigit() or token.lower().decode("latin-1") in WORDS:
            return token
        before = raw[start - 1 : start]
        if before == b"-" and len(token) == 1:
            return token  # an option of one letter
        if before == b"." and start > 1 and self._is_ending(token, raw, end):
            return token
        parts = _PARTS.findall(token)
        if len(parts) > _MAX_PARTS:
            return self._word(token)
        return b"".join(p if p.isdigit() else self._word(p) for p in parts)

    @staticmethod
    def _is_ending(token: bytes, raw: bytes, end: int) -> bool:
        after = raw[end : end + 1]
        return (
            len(token) <= MAX_EXTENSION
            and token.isascii()
            and token[:1].isalpha()
            and (not after or after in _ENDS)
        )

    def _word(self, word: bytes) -> bytes:
        found = self._known.get(word)
        if found is not None:
            return found
        for attempt in range(1000):
            seed = word + b"\0%d" % attempt
            number = int.from_bytes(hmac.digest(self._key, seed, "sha256")[:8])
            letters = _spelt(number)
            if letters not in self._taken and letters.decode() not in WORDS:
                break
        self._taken.add(letters)
        self._known[word] = letters
        return letters


def _spelt(number: int) -> bytes:
    base = len(_LETTERS)
    return "".join(_LETTERS[number // base**i % base] for i in range(_LENGTH)).encode()
