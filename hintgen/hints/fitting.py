"""Whether a template fits a name, and which text each placeholder takes; in bounded time.

The places of a name where the rest of a template fits are one integer, a bit per place. Parts are
taken from the last to the first, each in a few operations on such integers, so no look of a
template or a name makes it try one way after another. The texts are those that the regex of the
template gives: each placeholder takes as much as leaves a fit for the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property

from tracehint.hintgen.hints.holes import DIRS, HOLES, MAX_SEGMENT, MAX_SEGMENTS, Atom, members

Part = bytes | str  # literal bytes, or the name of a placeholder
Places = tuple[slice, ...]  # of the texts of the placeholders in a name

_IN_SEGMENT, _SLASH = members("[^/]"), members("/")
_FEW = 32  # places of a literal that are looked up one by one
_STEP = 128  # bytes of a name that one step of `Subject.work` goes over


class TooCostlyError(Exception):
    """The work that one name may cost is used up."""


class Subject:
    """A name, and what was found out about it for one template serves the next.

    `work`: steps done so far, each an operation on at most 128 places of the name; with more
    than `most` of them, looking on raises TooCostlyError.
    """

    def __init__(self, name: bytes, most: int = sys.maxsize) -> None:
        self.name, self.work, self.most = name, 0, most
        self.cost = 1 + len(name) // _STEP  # of one operation on all places
        self._runs: dict[tuple[bytes, int], int] = {}
        self._growths: dict[Atom, list[tuple[int, int]]] = {}
        self._literals: dict[bytes, int] = {}

    def spend(self, steps: int) -> None:
        """Count steps about to be done. Raises TooCostlyError."""
        if self.work + steps > self.most:
            raise TooCostlyError
        self.work += steps

    @cached_property
    def slashes(self) -> int:
        """Number of slashes in the name."""
        return self.name.count(b"/")

    def run(self, chars: bytes, length: int) -> int:
        """Places from which `length` bytes of the class follow."""
        found = self._runs.get((chars, length))
        if found is None:
            self.spend(self.cost)
            if length == 1:
                found = int(self.name[::-1].translate(chars) or b"0", 2)
            else:
                half = length // 2
                found = self.run(chars, length - half) & (self.run(chars, half) >> length - half)
            self._runs[chars, length] = found
        return found

    def growth(self, atom: Atom) -> list[tuple[int, int]]:
        """How to come from the atom's least length to its most: (bytes more, places of so many)."""
        found = self._growths.get(atom)
        if found is None:
            found = []
            done, most = 0, atom.most - atom.least
            while done < most:
                more = min(done + 1, most - done)
                run = self.run(atom.chars, more)
                if not run:  # nowhere that many: what is found is all
                    break
                found.append((more, run))
                done += more
            self._growths[atom] = found
        return found

    def places(self, literal: bytes) -> int:
        """Places where the literal stands."""
        found = self._literals.get(literal)
        if found is None:
            found = self._literals[literal] = self._look_up(literal)
        return found

    def _look_up(self, literal: bytes) -> int:
        found, at = 0, -1
        for _ in range(_FEW):
            at = self.name.find(literal, at + 1)
            if at < 0:
                self.spend(self.cost)
                return found
            found |= 1 << at
        self.spend(self.cost * (_FEW + len(literal)))
        found = -1
        for offset, byte in enumerate(literal):  # too many places: all at once, a byte at a time
            found &= self.run(_one(byte), 1) >> offset
        return found


def texts_at(where: Places, name: bytes) -> tuple[bytes, ...]:
    """The texts at these places of the name."""
    return tuple([name[place] for place in where])


def _one(byte: int) -> bytes:
    return b"0" * byte + b"1" + b"0" * (255 - byte)


def places(parts: Sequence[Part], subject: Subject) -> Places | None:
    """The place of each placeholder's text, or None where the template does not fit.

    Raises TooCostlyError.
    """
    ends = [1 << len(subject.name)]  # from the last part to the first
    for part in reversed(parts):
        ends.append(_before(part, ends[-1], subject))
        if not ends[-1]:
            return None
    if not ends[-1] & 1:
        return None
    subject.spend(len(parts))
    ends.reverse()
    caught, at = [], 0
    for part, rest in zip(parts, ends[1:], strict=True):
        start = at
        at = _longest(part, start, rest, subject)
        if isinstance(part, str):
            caught.append(slice(start, at))
    return tuple(caught)


def _before(part: Part, rest: int, subject: Subject) -> int:
    """Places from which the part leads to one of the places `rest`."""
    if isinstance(part, bytes):
        subject.spend(subject.cost)
        return subject.places(part) & (rest >> len(part))
    if part == DIRS:
        return _before_dirs(rest, subject)
    for atom in reversed(HOLES[part].atoms):
        rest = _before_atom(atom, rest, subject)
    return rest


def _before_atom(atom: Atom, rest: int, subject: Subject) -> int:
    """Places from which least to most bytes of the class lead to one of the places `rest`."""
    if atom.least:
        subject.spend(subject.cost)
        rest = (rest >> atom.least) & subject.run(atom.chars, atom.least)
    if rest:
        growth = subject.growth(atom)
        subject.spend(len(growth) * subject.cost)
        for more, run in growth:
            rest |= (rest >> more) & run
    return rest


_SEGMENT = Atom(_IN_SEGMENT, 1, MAX_SEGMENT)


def _before_dirs(rest: int, subject: Subject) -> int:
    """Places from which up to 64 whole components lead to one of the places `rest`."""
    found = latest = rest
    slashes = subject.run(_SLASH, 1)
    for _ in range(MAX_SEGMENTS):
        subject.spend(subject.cost)
        latest = (latest >> 1) & slashes
        if not latest:
            break
        latest = _before_atom(_SEGMENT, latest, subject) & ~found
        found |= latest
    return found


def _longest(part: Part, start: int, rest: int, subject: Subject) -> int:
    """The last of the places `rest` to which the part leads from `start`."""
    if isinstance(part, bytes):
        return start + len(part)
    if part == DIRS:
        return _longest_dirs(start, rest, subject.name)
    *fixed, last = HOLES[part].atoms
    for atom in fixed:
        start += _run_length(atom, start, subject)
    reach = (rest >> start) & ((2 << _run_length(last, start, subject)) - 1)
    return start + reach.bit_length() - 1


def _longest_dirs(start: int, rest: int, name: bytes) -> int:
    longest = start
    for _ in range(MAX_SEGMENTS):
        end = name.find(b"/", start, start + MAX_SEGMENT + 1) + 1
        if end < start + 2:  # none, or an empty component
            break
        if rest >> end & 1:
            longest = end
        start = end
    return longest


def _run_length(atom: Atom, start: int, subject: Subject) -> int:
    """Bytes of the class from `start` on, at most as many as the atom takes."""
    run = subject.run(atom.chars, 1) >> start
    return min(atom.most, (~run & (run + 1)).bit_length() - 1)
