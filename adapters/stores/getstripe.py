"""What `lfs getstripe -y` prints, as words of a layout.

A small YAML: lines `key: value`, deeper parts indented. Only the keys below are read, everything
else is passed over; a value of another form counts as not said.
"""

from __future__ import annotations

import re

_LINE = re.compile(r"^ *(?:- )?([a-z_.]+): *(\S*) *$", re.MULTILINE)
_MAX = 4 << 20  # letters of an answer that are looked at
_PATTERN_MDT = "mdt"


def components(text: str) -> list[dict[str, str]]:
    """Keys and values of each component; one entry for a plain layout."""
    found: list[dict[str, str]] = [{}]
    for key, value in _LINE.findall(text[:_MAX]):
        if key == "lcme_id":
            found.append({})
        found[-1].setdefault(key, value)
    return found


def layout_words(text: str) -> dict[str, str]:
    """`count`, `size`, `pool`, `mirrors`, `mdt`, `narrow` as in `lustre.WORDS`."""
    head, *parts = components(text)
    first_mirror = parts[0].get("lcme_mirror_id") if parts else None
    mine = [part for part in parts if part.get("lcme_mirror_id") == first_mirror]
    last = mine[-1] if mine else head
    words = {
        word: last[key]
        for word, key in _KEYS.items()
        if re.fullmatch(_FORMS[word], last.get(key, ""))
    }
    mirrors = head.get("lcm_mirror_count", "1")
    if mirrors.isdecimal() and int(mirrors) > 1:
        words["mirrors"] = mirrors
    for part in mine[:-1]:
        end = part.get("lcme_extent.e_end", "")
        if part.get("lmm_pattern") == _PATTERN_MDT and end.isdecimal():
            words["mdt"] = end
        elif part.get("lmm_stripe_count") == "1" and end.isdecimal():
            words["narrow"] = end
    return words


_KEYS = {"count": "lmm_stripe_count", "size": "lmm_stripe_size", "pool": "lmm_pool"}
_FORMS = {"count": r"-1|[0-9]{1,9}", "size": r"[1-9][0-9]{0,17}", "pool": r"[A-Za-z0-9_.-]{1,15}"}
