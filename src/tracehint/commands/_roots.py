"""`--data-root`: what was typed, and where it leads to."""

from __future__ import annotations

import os
from collections.abc import Sequence


def given_roots(typed: Sequence[str]) -> tuple[str, ...]:
    """The directories as absolute paths, each also without symbolic links: collectors that ask
    the kernel see the one, those that see what programs ask for see the other."""
    both = ((os.path.abspath(root), os.path.realpath(root)) for root in typed)  # noqa: PTH100
    return tuple(dict.fromkeys(path for pair in both for path in pair))
