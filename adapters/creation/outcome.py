"""The outcome of hints at creation: what was set, refused, removed or never matched."""

from __future__ import annotations

import bisect
import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracehint.adapters.creation import table_layout
from tracehint.adapters.creation.journal import Journal, Record
from tracehint.adapters.creation.launch import UNSEEN
from tracehint.adapters.creation.resolution import Resolution, at_creation
from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Setting, Store, prepare_for_script
from tracehint.errors import TracehintError
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.text.escape import shorten, terminal, text
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


_MAX_RENAMES = 8
_MAX_CLOCK_OFFSET_NS = 1_000_000  # maximum difference of the recorder's and the journal's times


@dataclass(frozen=True)
class Made:
    """A file that the run created or renamed: absolute name, time and process."""

    path: bytes
    t_ns: int
    pid: int
    program: str
    renamed: bool  # it had another name before

    def follow_renames(self, renames: Renames) -> Made:
        """Return the same file under its last name."""
        last = renames.last_name(self.path, self.t_ns)
        return self if last == self.path else replace(self, path=last, renamed=True)

    def why(self, unseen: str) -> str:
        """Return why it has no hint; `unseen`: programs whose creations are not recorded."""
        if self.renamed:
            return "made under another name and renamed"
        by = f" by {self.program}" if self.program else ""
        return f"its creation was not recorded{by} ({unseen})"


def made_in(bundle: Bundle, roots: Sequence[bytes]) -> Iterator[Made]:
    """Yield the files below the roots that the run created or renamed."""
    import pyarrow.compute as pc

    programs = programs_of(bundle.tables["processes"])
    opens = bundle.tables["opens"]
    opens = opens.filter(opens.column("created"))
    opens = opens.select(["path", "open_ns", "proc"]).rename_columns(["path", "t_ns", "proc"])
    names = bundle.tables["names"]
    first = names.filter(pc.equal(names.column("op"), "create"))  # O_TMPFILE: when it is linked
    first = first.select(["path", "t_ns", "proc"])
    renames = names.filter(pc.equal(names.column("op"), "rename"))
    renames = renames.select(["new_path", "t_ns", "proc"])
    renames = renames.rename_columns(["path", "t_ns", "proc"])
    for table, renamed in ((opens, False), (first, False), (renames, True)):
        for row in table.filter(_filter_below(table.column("path"), roots)).to_pylist():
            pid, program = programs.get(row["proc"], (0, ""))
            yield Made(row["path"], row["t_ns"], pid, program, renamed)


def _filter_below(paths: pa.ChunkedArray, roots: Sequence[bytes]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    hit = pc.starts_with(paths, roots[0].rstrip(b"/") + b"/")
    for root in roots[1:]:
        hit = pc.or_(hit, pc.starts_with(paths, root.rstrip(b"/") + b"/"))
    return hit


def programs_of(processes: pa.Table) -> Mapping[int, tuple[int, str]]:
    """Map process epochs to (pid, program name)."""
    rows = processes.select(["proc", "pid", "exe"]).to_pylist()
    return {r["proc"]: (r["pid"], to_text(os.path.basename(r["exe"] or b""))) for r in rows}  # noqa: PTH119


class Renames:
    """Renames of a run, to look up the last name of a file."""

    def __init__(self, bundle: Bundle) -> None:
        import pyarrow.compute as pc

        names = bundle.tables["names"]
        rows = names.filter(pc.equal(names.column("op"), "rename")).sort_by("t_ns")
        self._moves: dict[bytes, list[tuple[int, bytes]]] = {}
        for row in rows.select(["path", "t_ns", "new_path"]).to_pylist():
            self._moves.setdefault(row["path"], []).append((row["t_ns"], row["new_path"]))

    def last_name(self, path: bytes, t_ns: int) -> bytes:
        """Return the last name of the file that was called `path` at that time."""
        for _ in range(_MAX_RENAMES):
            moves = self._moves.get(path, [])
            at = bisect.bisect_left(moves, (t_ns - _MAX_CLOCK_OFFSET_NS, b""))
            if at == len(moves):
                break
            t_ns, path = moves[at]
        return path


Row = dict[str, Any]
_UNTYPED_REASON = "the type of the task that made it was not known"


@dataclass(frozen=True)
class RowBuilder:
    """Builds rows of the table `settings`; `host`: name of this host in the bundle."""

    resolution: Resolution
    store: Store  # in the form used for compiling: host left open
    roots: Sequence[bytes]
    host: str

    def rows(
        self, journal: Journal, made: Iterable[Made] = (), renames: Renames | None = None
    ) -> list[Row]:
        """Return a row per hint and file: those of the journal, then of files missing in it.

        Files have their last names according to `renames`.
        """
        rows: list[Row] = []
        for record, target in zip(journal.records, self._resolve(journal.records), strict=True):
            if target is not None:
                rows += self._make_record_rows(record, target)
        others = {self._join_root(record) for record in journal.records if record.withheld}
        if renames is not None:
            made = [one.follow_renames(renames) for one in made]
            for row in rows:
                row["path"] = renames.last_name(row["path"], row["t_ns"])
        return rows + self._list_unjournaled(made, others | {row["path"] for row in rows})

    def _resolve(self, records: Sequence[Record]) -> list[Target | None]:
        """Return each file's target: by name alone if no rule asked for the task's type."""
        types = self.resolution.hints.maker_types
        by_name = self.resolution.resolve([record.path for record in records])
        kinds = [types[r.type] if r.type < len(types) else None for r in records]
        by_maker = self.resolution.resolve([record.path for record in records], kinds)
        done = {record.path for record in records if not record.withheld}
        found: list[Target | None] = []
        for record, name, maker in zip(records, by_name, by_maker, strict=True):
            if record.withheld:  # its creator is unknown; a later writer may be known
                unknown = record.type == table_layout.UNKNOWN and record.path not in done
                found.append(name if unknown else None)
            else:
                found.append(name if record.type == table_layout.UNASKED else maker)
        return found

    def _join_root(self, record: Record) -> bytes:
        return self.roots[record.root].rstrip(b"/") + b"/" + record.path

    def _make_record_rows(self, record: Record, target: Target) -> list[Row]:
        here = os.uname().nodename
        common = {
            "host": self.host if record.host == here else record.host,
            "t_ns": record.t_ns,
            "pid": record.pid,
            "path": self._join_root(record),
        }
        short = record.host.partition(".")[0].encode()
        rows = self._make_target_rows(common, target, short)
        for i, row in enumerate(row for row in rows if row["key"]):
            if record.withheld:
                row |= {"state": "missed", "why": _UNTYPED_REASON}
            elif record.failed >> i & 1:
                why = f"the store refused it: {os.strerror(record.error)}"
                row |= {"state": "refused", "error": record.error, "why": why}
        return rows

    def _make_target_rows(self, common: Row, target: Target, short: bytes) -> list[Row]:
        settings, gaps = at_creation(self.store, target.hints)
        common = {**common, "rule": target.rule, "pattern": target.pattern, "error": None}
        rows = [{**common, **_setting_row(setting, short)} for setting in settings]
        for gap in gaps:
            if gap.level == "none":
                none = {"key": "", "value": b"", "state": "unsaid", "why": gap.reason}
                rows.append({**common, **none, "hint": gap.hint})
        return rows

    def _list_unjournaled(self, made: Iterable[Made], known: set[bytes]) -> list[Row]:
        """Return rows of files that match a rule and are missing in the journal."""
        last = {one.path: one for one in made if one.path not in known}
        names = [self._relative_path(path) for path in last]
        rows: list[Row] = []
        here = os.uname().nodename.partition(".")[0].encode()
        for one, target in zip(last.values(), self.resolution.resolve(names), strict=True):
            if target is None:
                continue
            common = {"host": self.host, "t_ns": one.t_ns, "pid": one.pid, "path": one.path}
            for row in self._make_target_rows(common, target, here):
                missed = row["state"] == "set"
                rows.append({**row, "state": "missed", "why": one.why(UNSEEN)} if missed else row)
        return rows

    def _relative_path(self, path: bytes) -> bytes:
        """Return the path relative to its root."""
        fitting = (root.rstrip(b"/") + b"/" for root in self.roots)
        return next(path[len(root) :] for root in fitting if path.startswith(root))


def teller(resolution: Resolution, store: Store, roots: Sequence[bytes], host: str) -> RowBuilder:
    """Return the row builder of a run whose rules were compiled for this store."""
    return RowBuilder(resolution, prepare_for_script(store), roots, host)


def _setting_row(setting: Setting, short: bytes) -> Row:
    value = setting.value.replace(b"@host", short)
    return {"hint": setting.hint, "key": setting.key, "value": value, "state": "set", "why": ""}


# (op in table `names`, column of the name that loses its hint, reason)
_REMOVALS = (
    ("unlink", "path", "deleted and made anew"),
    ("rename", "new_path", "another file was renamed over it"),
    ("exchange", "path", "exchanged with another file"),
    ("exchange", "new_path", "exchanged with another file"),
)


def explain_lost_hints(bundle: Bundle, paths: Collection[bytes]) -> dict[bytes, str]:
    """Map absolute paths to the last event that removed the hint, with the program."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(paths), pa.binary())
    programs = programs_of(bundle.tables["processes"])
    names = bundle.tables["names"]
    last: dict[bytes, tuple[int, str]] = {}
    for op, side, why in _REMOVALS:
        hit = pc.and_(pc.equal(names.column("op"), op), pc.is_in(names.column(side), wanted))
        for row in names.filter(hit).select([side, "seq", "proc"]).to_pylist():
            _, program = programs.get(row["proc"], (0, ""))
            words = f"{why} by {program}" if program else why
            last[row[side]] = max(last.get(row[side], (-1, "")), (row["seq"], words))
    return {path: words for path, (_, words) in last.items()}


_COUNT_TEXTS = {
    "conflict": "files: two rules match equally well and disagree",
    "costly": "files: too many rules may match the name (limit of the preload library)",
    "damaged": "files: the rule table is damaged",
    "dropped": "files not recorded because the journal was full",
    "untyped": "files: a rule needs the type of the creating task, which was unknown",
    "nameless": "files whose name is unknown (no /proc, or it is too long)",
    "silent": "times the store's tool did not answer (not called again after three)",
    "unreadable": "journals that cannot be read",
}
_MAX_REASONS = 4  # maximum number of reported reasons


def summary(journal: Journal, rows: Sequence[dict[str, Any]], unread: int) -> list[str]:
    """Return report lines: the number of hinted files, then why others have no hint."""
    files: dict[bytes, str] = {}
    for row in rows:  # a file with one setting that was set counts as set
        files[row["path"]] = "set" if files.get(row["path"]) == "set" else row["state"]
    states = Counter(files.values())
    expressible = sum(count for state, count in states.items() if state != "unsaid")
    lines = [f"hints set on {states['set']:,} of {plural(expressible, 'matching file')}"]
    if not expressible:
        lines = _explain_inexpressible(rows) or ["no matching file was created"]
    bad = [row for row in rows if row["state"] not in ("set", "unsaid")]
    reasons = Counter((row["state"], row["key"], row["why"]) for row in bad)
    for (state, key, why), count in reasons.most_common(_MAX_REASONS):
        kind = (state, key, why)
        example = next(r["path"] for r in bad if (r["state"], r["key"], r["why"]) == kind)
        name = shorten(terminal(text(example)), 60)
        lines.append(f"  {count:,} x {terminal(key)} {state}: {terminal(why)}, as {name}")
    if len(reasons) > _MAX_REASONS:
        lines.append(f"  and {plural(len(reasons) - _MAX_REASONS, 'other reason')}")
    if unread:
        lines.append(f"  {plural(unread, 'file')} could not be read back")
    lines += [
        f"  {journal.counts[name]:,} {words}"
        for name, words in _COUNT_TEXTS.items()
        if journal.counts[name]
    ]
    return lines


def _explain_inexpressible(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return report lines with the reasons why no matching file has a hint."""
    reasons = Counter(row["why"] for row in rows)
    return [
        f"no hint was set on {plural(count, 'file')}: {terminal(why)}"
        for why, count in reasons.most_common(_MAX_REASONS)
    ]


_READ_BACK_STATES = ("set", "missed")
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW


def read_back(rows: Sequence[dict[str, Any]], store: Store, seconds: float) -> int:
    """Read settings back and update the states of rows; return the number of files not read.

    `set` rows whose value is gone become `lost`. `missed` rows whose value is present become `set`:
    the journal had no space for them. Rows of deleted files keep their state. If a name was created
    several times, the last rows are checked. `seconds`: time limit, for stores with slow tools.
    """
    last: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["state"] in _READ_BACK_STATES:
            settings_of_name = last[row["path"]]
            if settings_of_name and settings_of_name[0]["t_ns"] != row["t_ns"]:
                settings_of_name.clear()
            settings_of_name.append(row)
    until, unread = time.monotonic() + seconds, 0
    for path, settings in last.items():
        if time.monotonic() > until or not _read_file_settings(path, settings, store):
            unread += 1
    return unread


def _read_file_settings(path: bytes, rows: list[dict[str, Any]], store: Store) -> bool:
    """Update the rows of a file; False if it cannot be read. A deleted file counts as read."""
    try:
        fd = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        for row in rows:
            got = store.read(fd, row["key"])
            if got == row["value"]:
                row |= {"state": "set", "why": ""}
            elif row["state"] == "set":
                row |= {"state": "lost", "why": _explain_loss(got)}
    except (OSError, TracehintError):
        return False
    finally:
        os.close(fd)
    return True


def _explain_loss(got: bytes | None) -> str:
    if got is None:
        return "another file took its name, or the attribute was removed"
    return "it has another value now"
