"""What hints at creation came to, in a few lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tracehint.adapters.creation.journal import Journal
from tracehint.hintgen.text.escape import shorten, terminal, text
from tracehint.hintgen.text.units import plural

_COUNTED = {
    "conflict": "files: two rules fit equally well and disagree",
    "costly": "files: too many rules may fit the name (limit of the preload library)",
    "damaged": "files: the rule table is damaged",
    "dropped": "files whose record found no room in the journal",
    "untyped": "files: the type of the task that made them was not known, as a rule asks",
    "nameless": "files without a name that could be told (/proc is not there, or it is too long)",
    "silent": "times the store's tool did not answer (after three it is not asked again)",
    "unreadable": "journals that cannot be read",
}
_MOST = 4  # reasons that are told


def summary(journal: Journal, rows: Sequence[dict[str, Any]], unread: int) -> list[str]:
    """The files hinted, then why others were not."""
    files: dict[bytes, str] = {}
    for row in rows:  # one that was set is enough
        files[row["path"]] = "set" if files.get(row["path"]) == "set" else row["state"]
    states = Counter(files.values())
    said = sum(count for state, count in states.items() if state != "unsaid")
    lines = [f"{states['set']:,} of {plural(said, 'file')} that a rule is for got their hints"]
    if not said:
        lines = ["no file was made that a rule is for"]
    bad = [row for row in rows if row["state"] not in ("set", "unsaid")]
    reasons = Counter((row["state"], row["key"], row["why"]) for row in bad)
    for (state, key, why), count in reasons.most_common(_MOST):
        kind = (state, key, why)
        example = next(r["path"] for r in bad if (r["state"], r["key"], r["why"]) == kind)
        name = shorten(terminal(text(example)), 60)
        lines.append(f"  {count:,} x {terminal(key)} {state}: {terminal(why)}, as {name}")
    if len(reasons) > _MOST:
        lines.append(f"  and {plural(len(reasons) - _MOST, 'other reason')}")
    if unread:
        lines.append(f"  {plural(unread, 'file')} could not be read back")
    lines += [
        f"  {journal.counts[name]:,} {words}"
        for name, words in _COUNTED.items()
        if journal.counts[name]
    ]
    return lines
