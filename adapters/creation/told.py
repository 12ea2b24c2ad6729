"""What hints at creation came to, as rows of the bundle's table `settings` and in words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.adapters.creation.journal import Journal, Record
from tracehint.adapters.creation.resolution import Resolution
from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Store, scripted
from tracehint.hintgen.text.units import plural

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTED = {
    "conflict": "files: two rules fit equally well and disagree",
    "costly": "files: too many rules may fit the name (limit of the preload library)",
    "damaged": "files: the rule table is damaged",
    "dropped": "files whose record found no room in the journal",
    "nameless": "files without a name that could be told (/proc is not there, or it is too long)",
    "unreadable": "journals that cannot be read",
}


def settings_table(
    journal: Journal, resolution: Resolution, store: Store, roots: Sequence[bytes], host: str
) -> pa.Table:
    """Rows of the table `settings`: one for each hint of each file that was made.

    `host`: the name of this host in the bundle.
    """
    from tracehint.schemas.store import table_from_rows

    here = os.uname().nodename
    found = resolution.resolve([record.path for record in journal.records])
    store = scripted(store)
    rows: list[dict[str, Any]] = []
    for record, target in zip(journal.records, found, strict=True):
        if target is not None:
            name = host if record.host == here else record.host
            rows += _rows(record, target, store, roots[record.root], name)
    return table_from_rows("settings", rows)


def _rows(
    record: Record, target: Target, store: Store, root: bytes, host: str
) -> list[dict[str, Any]]:
    settings, gaps = store.translate(target.hints, "file")
    common = {
        "host": host, "t_ns": record.t_ns, "pid": record.pid,
        "path": root.rstrip(b"/") + b"/" + record.path, "rule": target.rule,
        "pattern": target.pattern,
    }  # fmt: skip  # a table
    short = record.host.partition(".")[0].encode()
    rows = []
    for i, setting in enumerate(settings):
        refused = bool(record.failed >> i & 1)
        rows.append(
            {
                **common,
                "hint": setting.hint,
                "key": setting.key,
                "value": setting.value.replace(b"@host", short),
                "state": "refused" if refused else "set",
                "error": record.error if refused else None,
            }
        )
    unsaid = {"key": "", "value": b"", "state": "unsaid", "error": None}
    rows += [{**common, **unsaid, "hint": gap.hint} for gap in gaps if gap.level == "none"]
    return rows


def summary(journal: Journal) -> list[str]:
    """Lines for people."""
    tagged, refused = journal.counts["set"], journal.counts["refused"]
    lines = [f"{plural(tagged, 'new file')} hinted before the first byte"]
    if refused:
        lines[0] += f"; the store refused hints of {refused:,} more"
    lines += [
        f"{journal.counts[name]:,} {text}"
        for name, text in _COUNTED.items()
        if journal.counts[name]
    ]
    return lines


def first_reasons(table: pa.Table, most: int = 3) -> list[str]:
    """Why the store refused, with one file as an example each."""
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    rows = table.filter(pc.equal(table.column("state"), "refused"))
    kinds = Counter(
        zip(rows.column("key").to_pylist(), rows.column("error").to_pylist(), strict=True)
    )
    lines = []
    for (key, error), count in kinds.most_common(most):
        hit = pc.and_(pc.equal(rows.column("key"), key), pc.equal(rows.column("error"), error))
        example = rows.filter(hit).column("path")[0].as_py()
        lines.append(
            f"{plural(count, 'time')} {key}: {os.strerror(error)}, as {text(example)[:200]}"
        )
    return lines
