"""Names that differ in digits alone, told apart only where a rule does.

No placeholder tells one digit from another, and most templates have none in their literal text. For
such names everything that follows from fitting is the same, and is found out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import overload

from tracehint.hintgen.hints.fitting import Subject, TooCostlyError
from tracehint.hintgen.hints.template import Template
from tracehint.hintgen.match.coded import Coded, coded
from tracehint.hintgen.match.templateindex import TemplateIndex

_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
MOST = 50_000  # skeletons of which something is remembered


def skeleton_of(name: bytes) -> bytes:
    """The name with every digit as 0.

    >>> skeleton_of(b"run12/part_007.fits")
    b'run00/part_000.fits'
    """
    return name.translate(_ZEROS)


class AskedNames(Sequence[bytes]):
    """Names that are asked about, maybe several times, with what follows from them alone."""

    def __init__(self, names: Sequence[bytes]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        return self._names[at]

    @cached_property
    def skeletons(self) -> Coded[bytes]:
        """The skeleton of each."""
        return coded(map(skeleton_of, self._names))


def has_digits(template: Template) -> bool:
    """Whether its literal text has digits."""
    return any(isinstance(part, bytes) and _digit_in(part) for part in template.parts)


def _digit_in(text: bytes) -> bool:
    return text.translate(None, b"0123456789") != text


class Skeletons:
    """Which names are told apart by their digits by one of `templates`."""

    def __init__(self, templates: Iterable[Template]) -> None:
        some = [template for template in templates if has_digits(template)]
        self._index = TemplateIndex(Template(tuple(map(_zeros, t.parts))) for t in some)
        self._any = bool(some)
        self._alike: dict[bytes, bool] = {}

    def alike(self, skeleton: bytes, most: int) -> bool:
        """Whether the same templates fit all names of a skeleton. `most`: work to find it out."""
        if not self._any:
            return True
        found = self._alike.get(skeleton)
        if found is None:
            try:
                found = not self._index.fitting(Subject(skeleton, most))
            except TooCostlyError:
                found = False
            if len(self._alike) >= MOST:
                self._alike.clear()
            self._alike[skeleton] = found
        return found


def _zeros(part: bytes | str) -> bytes | str:
    return part.translate(_ZEROS) if isinstance(part, bytes) else part
