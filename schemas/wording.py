"""Sentences with a count: one file is, two files are."""

from __future__ import annotations

import re

_CHOICE = re.compile(r"\[([^\[|\]]*)\|([^\[|\]]*)\]")


def plural(count: int, word: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "file"), plural(3000, "file")
    ('1 file', '3,000 files')
    """
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def agree(count: int, text: str) -> str:
    """Replace `{n}` in the text by the count, and each `[one|many]` by the form that fits it.

    >>> agree(1, "{n} [file is|files are] left"), agree(2, "{n} [file is|files are] left")
    ('1 file is left', '2 files are left')
    """
    return _CHOICE.sub(lambda found: found[1 if count == 1 else 2], text).replace(
        "{n}", f"{count:,}"
    )
