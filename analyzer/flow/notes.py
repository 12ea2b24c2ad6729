"""Notes of several partitions as if the run had been one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_COUNT = re.compile(r"(\d+) ")
_WORST = re.compile(r"\(up to ([0-9.]+) s\)")


def merged(notes: Iterable[str]) -> list[str]:
    """Notes that say the same about different counts are one: counts at the front are added,
    and of `(up to X s)` the largest stays. Others stay as they are."""
    counts: dict[str, int] = {}
    worst: dict[str, float] = {}
    for note in notes:
        count = _COUNT.match(note)
        text = note[count.end() :] if count else note
        far = _WORST.search(text) if count else None
        if far:
            text = _WORST.sub("(up to {} s)", text, count=1)
            worst[text] = max(worst.get(text, 0.0), float(far[1]))
        counts[text] = counts.get(text, 0) + int(count[1]) if count else 0
    found = []
    for text, n in counts.items():
        if text in worst:
            text = text.replace("(up to {} s)", f"(up to {worst[text]:.3f} s)", 1)
        found.append(f"{n} {text}" if n else text)
    return found
