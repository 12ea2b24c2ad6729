"""The hints that a run's own analysis gives: what rules are scored against."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tracehint.hintgen.hints.mapping import Need, hints_of

HINTS = pa.schema(
    [
        ("path", pa.binary()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("pattern", pa.string()),
        ("file", pa.int64()),
        ("bytes", pa.int64()),
        ("saves_bytes", pa.int64()),
        ("confidence", pa.float64()),
    ]
)


def hints_of_facts(facts: pa.Table, nodes: int) -> pa.Table:
    """One row per (file, hint): the placement hints of every file's primary pattern."""
    import pyarrow.compute as pc

    labelled = facts.filter(pc.not_equal(facts["pattern"], ""))
    columns: dict[str, list[Any]] = {field.name: [] for field in HINTS}
    for row in labelled.to_pylist():
        need = Need(
            is_input=not row["producers"],
            readers=max(2, len(row["consumers"])),
            nodes=nodes,
            size=row["size_bytes"],
            region=row["region_bytes"] or 0,
            starts=tuple(row["starts"] or ()),
            group=f"g{row['grp']}",
        )
        for hint in hints_of(row["pattern"], need):
            for key, value in (
                ("path", row["path"]),
                ("name", hint.name),
                ("value", hint.value),
                ("pattern", row["pattern"]),
                ("file", row["file"]),
                ("bytes", row["size_bytes"]),
                ("saves_bytes", row["saves_bytes"]),
                ("confidence", row["confidence"]),
            ):
                columns[key].append(value)
    return pa.table(columns, schema=HINTS)
