"""The preload library: its path, its blind spots, and which programs can load it."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tracehint.errors import NotBegunError

LIBRARY = Path(__file__).parent / "bin" / "libtracehint.so"
BLIND = ("io_uring", "mmap", "setuid_programs")


def can_be_named() -> tuple[str, str]:
    """Return why the library can or cannot be preloaded, and the remedy; no remedy: it can."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine != "x86_64":
        return (
            f"the preload library supports only x86-64 Linux, this is {machine}",
            "Record with --collector ebpf or strace. Files cannot be hinted at creation here: "
            "`tracehint apply` hints existing files.",
        )
    if not LIBRARY.is_file():
        return (
            f"the preload library is not built ({LIBRARY.name} is missing)",
            "Run `make tracer` in the source tree (it needs a C compiler), or install a wheel.",
        )
    if any(mark in str(LIBRARY) for mark in " :"):
        return (
            f"the loader does not accept a path with a space or a colon: {LIBRARY}",
            "Install tracehint in another directory.",
        )
    return "the preload library is installed", ""


# enum th_class of hook.h -> kind of program, and how it runs with the library
CLASSES = {
    0: ("dynamic", "is recorded"),
    1: ("static", "runs, but its reads and writes are not recorded; its children are recorded"),
    2: ("Go", "runs, but its reads and writes are not recorded; its children are recorded"),
    3: ("another C library", "runs without the library: it and its children are not recorded"),
    4: ("setuid", "runs unmodified: it and its children are not recorded"),
    5: ("AddressSanitizer", "runs without the library: it and its children are not recorded"),
    6: ("32 bits", "runs without the library: it and its children are not recorded"),
    7: ("unreadable", "is recorded if it is dynamic"),
    8: (
        "in a container without the library",
        "runs without it: it and its children are not recorded",
    ),
    9: (
        "as another user, or apart",
        "runs, but cannot record: it and its children are not recorded",
    ),
}
_ENTERED = (0, 7)
_REFUSING = (3, 5, 6)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(LIBRARY))


def class_of(path: str) -> int:
    """Return the class number of a program; a script has the class of its interpreter."""
    return int(_library().tracehint_class(os.fsencode(path)))


def enters(number: int) -> bool:
    """Whether a program of this class is recorded."""
    return number in _ENTERED


def bearable_environment(path: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for starting the program: without the library if the program does
    not start with it. The library does the same before each exec."""
    preload = environment.get("LD_PRELOAD", "")
    if str(LIBRARY) not in preload.split(":") or class_of(path) not in _REFUSING:
        return dict(environment)
    rest = [part for part in preload.split(":") if part != str(LIBRARY)]
    return {**environment, "LD_PRELOAD": ":".join(rest)}


def refuse_unenterable(path: str) -> None:
    """Raise NotBegunError if the command itself would not be recorded."""
    number = class_of(path)
    if not enters(number):
        kind, becomes = CLASSES.get(number, ("unknown", "is not recorded"))
        raise NotBegunError(
            f"preload: {path} ({kind}) {becomes}", "Use --collector ebpf or strace for it."
        )
