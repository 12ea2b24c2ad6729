"""Which programs the library can enter, as it tells itself before each exec."""

from __future__ import annotations

import ctypes
import functools
import os

from tracehint.collectors.preload.blind import LIBRARY
from tracehint.errors import NotBegunError

# enum th_class of hook.h: what a program is, and what becomes of it below the library
CLASSES = {
    0: ("dynamic", "is recorded"),
    1: ("static", "runs, but its reads and writes are not seen; its children are recorded"),
    2: ("Go", "runs, but its reads and writes are not seen; its children are recorded"),
    3: ("another C library", "runs without the library: it and its children are not seen"),
    4: ("setuid", "runs as ever: it and its children are not seen"),
    5: ("AddressSanitizer", "runs without the library: it and its children are not seen"),
    6: ("32 bits", "runs without the library: it and its children are not seen"),
    7: ("unreadable", "is recorded where it is dynamic"),
    8: ("in a container without the library", "runs without it: it and its children are not seen"),
    9: ("as another user", "runs, but may not record: it and its children are not seen"),
}
_ENTERED = (0, 7)
_FOLLOWED = (1, 2)  # by option: their names and descriptors


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(LIBRARY))


def class_of(path: str) -> int:
    """The number of the program's class; a script is what its interpreter is."""
    return int(_library().tracehint_class(os.fsencode(path)))


def enters(number: int) -> bool:
    """Whether a program of this class is recorded."""
    return number in _ENTERED


def refuse_unenterable(path: str, *, follow: bool = False) -> None:
    """Raises NotBegunError where the command itself would not be seen."""
    number = class_of(path)
    if not enters(number) and not (follow and number in _FOLLOWED):
        kind, becomes = CLASSES.get(number, ("unknown", "is not seen"))
        raise NotBegunError(
            f"preload: {path} ({kind}) {becomes}",
            "Use --collector ebpf or strace for it"
            + ("; --option follow=yes tells its opens." if number in _FOLLOWED else "."),
        )
