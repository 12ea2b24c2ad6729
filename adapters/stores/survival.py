"""Hints that are set before a run and lost in it, according to a recorded run.

Derived from the bundle's table `names`: a program that deletes and recreates a file, or renames
another file over it, leaves a file without the hint. A file that is truncated and rewritten (`>`)
keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

# op in table `names` -> (column of the name that loses the hint, reason)
_LOSS_EVENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "unlink": (("path", "deleted"),),
    "rename": (("new_path", "replaced by a rename"), ("path", "moved away by a rename")),
    "exchange": (("path", "exchanged by a rename"), ("new_path", "exchanged by a rename")),
}


@dataclass(frozen=True)
class Lost:
    """The first event that removes a hint that was set before the run."""

    why: str
    program: str  # that caused it; "" if not recorded


def lost_in(run: Path, paths: Collection[bytes]) -> dict[bytes, Lost]:
    """Return the paths (below the data root) whose hints a run like `run` removes.

    Raises BundleError.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.analyzer.roots import data_roots, relative_paths
    from tracehint.schemas.store import read_bundle
    from tracehint.schemas.tables import TABLES

    events = read_bundle(run, without=TABLES.keys() - {"names"}).tables["names"]
    if not pc.any(pc.is_in(events.column("op"), pa.array(_LOSS_EVENTS))).as_py():
        return {}
    bundle = read_bundle(run, without=("metadata_ops", "attributes", "marks"))
    roots = data_roots(bundle)
    names = bundle.tables["names"].sort_by("seq")
    wanted = pa.array(sorted(paths), pa.binary())
    programs = _read_programs(bundle.tables["processes"])
    found: dict[bytes, tuple[int, Lost]] = {}
    for op, sides in _LOSS_EVENTS.items():
        rows = names.filter(pc.equal(names.column("op"), op))
        for side, why in sides:
            short = relative_paths(rows.column(side).combine_chunks(), roots)
            hit = pc.is_in(short, wanted)
            hits = pa.table({"path": short, "proc": rows.column("proc"), "seq": rows.column("seq")})
            for row in hits.filter(hit).to_pylist():
                event = row["seq"], Lost(why, programs.get(row["proc"], ""))
                found[row["path"]] = min(found.get(row["path"], event), event, key=lambda e: e[0])
    return {path: lost for path, (_, lost) in found.items()}


def _read_programs(processes: pa.Table) -> Mapping[int, str]:
    rows = processes.select(["proc", "exe"]).to_pylist()
    return {r["proc"]: to_text(r["exe"].rpartition(b"/")[2]) for r in rows if r["exe"]}


def explain_losses(lost: Mapping[bytes, Lost], of: int) -> list[str]:
    """Return report lines, one per reason; `of`: number of hinted files."""
    if not lost:
        return []
    lines = [
        f"{len(lost):,} of {plural(of, 'hinted file')} cannot keep a hint that is set before the "
        "run, according to the recorded run:"
    ]
    kinds = Counter(lost.values())
    for kind, count in kinds.most_common(20):
        example = next(path for path, one in lost.items() if one == kind)
        name = shorten(terminal(to_text(example)), 60)
        by = f" by {terminal(kind.program)}" if kind.program else ""
        lines.append(f"  {plural(count, 'file')} {kind.why}{by}, as {name}")
    lines.append("  only their directory's default or tagging afterwards remains")
    return lines
