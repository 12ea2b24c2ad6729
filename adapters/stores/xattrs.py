"""Extended attributes on open descriptors, and which names may be written at all."""

from __future__ import annotations

import errno
import os
import re

from tracehint.errors import UsageError

MAX_NAME = 255  # bytes, prefix included; the kernel answers ERANGE above
FORBIDDEN = ("security.", "system.")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")


def check_attribute(name: str, *, allow_trusted: bool) -> None:
    """Raise UsageError for an attribute name that tracehint does not write."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is no usable attribute name",
            "Names are at most 255 letters, digits, and . _ : - (check --prefix).",
        )
    lower = name.lower()
    if lower.startswith(FORBIDDEN):
        raise UsageError(
            f"attribute {name} is refused: security.* and system.* change who may do what",
            "Choose another --prefix, for example user.",
        )
    if lower.startswith("trusted.") and not allow_trusted:
        raise UsageError(
            f"attribute {name} is in the administrator's name space",
            "Give --allow-trusted (needs CAP_SYS_ADMIN), or a --prefix below user.",
        )


def get_value(fd: int, name: str) -> bytes | None:
    """Value of an attribute of an open file; None: not set, or not supported there."""
    try:
        return os.getxattr(fd, name)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return None
        raise


def set_value(fd: int, name: str, value: bytes) -> None:
    """Set an attribute of an open file."""
    os.setxattr(fd, name, value)


def remove_value(fd: int, name: str) -> None:
    """Remove an attribute; no error where it is not set."""
    try:
        os.removexattr(fd, name)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
