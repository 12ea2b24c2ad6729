"""Files of a run that a rule is for and that nobody saw being made, or under another name."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracehint.hintgen.hints.pathtext import to_text

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


_HOPS = 8
_CLOCKS_NS = 1_000_000  # by which the recorder's times and the journal's may differ


@dataclass(frozen=True)
class Made:
    """A file that the run made: its last name (absolute), when, by whom."""

    path: bytes
    t_ns: int
    pid: int
    program: str
    renamed: bool  # it had another name before

    def moved(self, renames: Renames) -> Made:
        """The same file under its last name."""
        last = renames.last_name(self.path, self.t_ns)
        return self if last == self.path else replace(self, path=last, renamed=True)

    def why(self, unseen: str) -> str:
        """Why it has no hint; `unseen`: who may make files unnoticed."""
        if self.renamed:
            return "made under another name and renamed"
        by = f" by {self.program}" if self.program else ""
        return f"nobody saw it being made{by} ({unseen})"


def made_in(bundle: Bundle, roots: Sequence[bytes]) -> Iterator[Made]:
    """Files below the roots that the run created or renamed, by their names."""
    import pyarrow.compute as pc

    programs = programs_of(bundle.tables["processes"])
    opens = bundle.tables["opens"]
    opens = opens.filter(opens.column("created"))
    opens = opens.select(["path", "open_ns", "proc"]).rename_columns(["path", "t_ns", "proc"])
    names = bundle.tables["names"]
    first = names.filter(pc.equal(names.column("op"), "create"))  # of O_TMPFILE: when it is linked
    first = first.select(["path", "t_ns", "proc"])
    renames = names.filter(pc.equal(names.column("op"), "rename"))
    renames = renames.select(["new_path", "t_ns", "proc"])
    renames = renames.rename_columns(["path", "t_ns", "proc"])
    for table, renamed in ((opens, False), (first, False), (renames, True)):
        for row in table.filter(_below(table.column("path"), roots)).to_pylist():
            pid, program = programs.get(row["proc"], (0, ""))
            yield Made(row["path"], row["t_ns"], pid, program, renamed)


def _below(paths: pa.ChunkedArray, roots: Sequence[bytes]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    hit = pc.starts_with(paths, roots[0].rstrip(b"/") + b"/")
    for root in roots[1:]:
        hit = pc.or_(hit, pc.starts_with(paths, root.rstrip(b"/") + b"/"))
    return hit


def programs_of(processes: pa.Table) -> Mapping[int, tuple[int, str]]:
    """Process epoch -> (pid, name of its program)."""
    rows = processes.select(["proc", "pid", "exe"]).to_pylist()
    return {r["proc"]: (r["pid"], to_text(os.path.basename(r["exe"] or b""))) for r in rows}  # noqa: PTH119


class Renames:
    """Where the files of a run went, by name and time."""

    def __init__(self, bundle: Bundle) -> None:
        import pyarrow.compute as pc

        names = bundle.tables["names"]
        rows = names.filter(pc.equal(names.column("op"), "rename")).sort_by("t_ns")
        self._moves: dict[bytes, list[tuple[int, bytes]]] = {}
        for row in rows.select(["path", "t_ns", "new_path"]).to_pylist():
            self._moves.setdefault(row["path"], []).append((row["t_ns"], row["new_path"]))

    def last_name(self, path: bytes, t_ns: int) -> bytes:
        """The last name of the file that had this one at that time."""
        for _ in range(_HOPS):
            moves = self._moves.get(path, [])
            at = bisect.bisect_left(moves, (t_ns - _CLOCKS_NS, b""))
            if at == len(moves):
                break
            t_ns, path = moves[at]
        return path
