"""What took a hint away during the run: the last thing that happened to the file's name."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tracehint.adapters.creation.missed import programs_of

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

# op of the table `names` -> (the name that loses its hint, in words)
_TAKING = (
    ("unlink", "path", "deleted and made anew"),
    ("rename", "new_path", "another file was renamed over it"),
    ("exchange", "path", "exchanged with another file"),
    ("exchange", "new_path", "exchanged with another file"),
)


def taken(bundle: Bundle, paths: Collection[bytes]) -> dict[bytes, str]:
    """Path (absolute) -> what took its hint, and which program did."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(paths), pa.binary())
    programs = programs_of(bundle.tables["processes"])
    names = bundle.tables["names"]
    last: dict[bytes, tuple[int, str]] = {}
    for op, side, why in _TAKING:
        hit = pc.and_(pc.equal(names.column("op"), op), pc.is_in(names.column(side), wanted))
        for row in names.filter(hit).select([side, "seq", "proc"]).to_pylist():
            _, program = programs.get(row["proc"], (0, ""))
            words = f"{why} by {program}" if program else why
            last[row[side]] = max(last.get(row[side], (-1, "")), (row["seq"], words))
    return {path: words for path, (_, words) in last.items()}
