"""What hints at creation came to, as rows of the bundle's table `settings`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tracehint.adapters.creation import layout
from tracehint.adapters.creation.journal import Journal, Record
from tracehint.adapters.creation.missed import Made, Renames
from tracehint.adapters.creation.resolution import Resolution
from tracehint.adapters.creation.running import Running
from tracehint.adapters.creation.settings import at_creation
from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Setting, Store, scripted

Row = dict[str, Any]
_UNTYPED = "the type of the task that made it was not known"


@dataclass(frozen=True)
class Teller:
    """Makes rows; `host` is the name of this host in the bundle."""

    resolution: Resolution
    store: Store  # as it was compiled: a script's, which leaves the host open
    roots: Sequence[bytes]
    host: str
    unseen: str = Running.unseen  # who may make files unnoticed

    def rows(
        self, journal: Journal, made: Iterable[Made] = (), renames: Renames | None = None
    ) -> list[Row]:
        """A row for each hint of each file: those of the journal, then what it does not know.

        A file stands there under the last name that `renames` tells.
        """
        rows: list[Row] = []
        for record, target in zip(journal.records, self._targets(journal.records), strict=True):
            if target is not None:
                rows += self._of_record(record, target)
        others = {self._whole(record) for record in journal.records if record.withheld}
        if renames is not None:
            made = [one.moved(renames) for one in made]
            for row in rows:
                row["path"] = renames.last_name(row["path"], row["t_ns"])
        return rows + self._unseen(made, others | {row["path"] for row in rows})

    def _targets(self, records: Sequence[Record]) -> list[Target | None]:
        """What each file was to get: by its name, where no rule asked who makes it."""
        types = self.resolution.hints.maker_types
        by_name = self.resolution.resolve([record.path for record in records])
        kinds = [types[r.type] if r.type < len(types) else None for r in records]
        by_maker = self.resolution.resolve([record.path for record in records], kinds)
        done = {record.path for record in records if not record.withheld}
        found: list[Target | None] = []
        for record, name, maker in zip(records, by_name, by_maker, strict=True):
            if record.withheld:  # who began it was not known, who wrote it may have been
                unknown = record.type == layout.UNKNOWN and record.path not in done
                found.append(name if unknown else None)
            else:
                found.append(name if record.type == layout.UNASKED else maker)
        return found

    def _whole(self, record: Record) -> bytes:
        return self.roots[record.root].rstrip(b"/") + b"/" + record.path

    def _of_record(self, record: Record, target: Target) -> list[Row]:
        here = os.uname().nodename
        common = {
            "host": self.host if record.host == here else record.host,
            "t_ns": record.t_ns, "pid": record.pid,
            "path": self._whole(record),
        }  # fmt: skip  # a table
        short = record.host.partition(".")[0].encode()
        rows = self._of_target(common, target, short)
        for i, row in enumerate(row for row in rows if row["key"]):
            if record.withheld:
                row |= {"state": "missed", "why": _UNTYPED}
            elif record.failed >> i & 1:
                why = f"the store refused it: {os.strerror(record.error)}"
                row |= {"state": "refused", "error": record.error, "why": why}
        return rows

    def _of_target(self, common: Row, target: Target, short: bytes) -> list[Row]:
        settings, gaps = at_creation(self.store, target.hints)
        common = {**common, "rule": target.rule, "pattern": target.pattern, "error": None}
        rows = [{**common, **_said(setting, short)} for setting in settings]
        for gap in gaps:
            if gap.level == "none":
                none = {"key": "", "value": b"", "state": "unsaid", "why": gap.reason}
                rows.append({**common, **none, "hint": gap.hint})
        return rows

    def _unseen(self, made: Iterable[Made], known: set[bytes]) -> list[Row]:
        """Rows of files that a rule is for and that the journal does not know."""
        last = {one.path: one for one in made if one.path not in known}
        names = [self._below(path) for path in last]
        rows: list[Row] = []
        here = os.uname().nodename.partition(".")[0].encode()
        for one, target in zip(last.values(), self.resolution.resolve(names), strict=True):
            if target is None:
                continue
            common = {"host": self.host, "t_ns": one.t_ns, "pid": one.pid, "path": one.path}
            for row in self._of_target(common, target, here):
                missed = row["state"] == "set"
                rows.append(
                    {**row, "state": "missed", "why": one.why(self.unseen)} if missed else row
                )
        return rows

    def _below(self, path: bytes) -> bytes:
        """The path below its root."""
        fitting = (root.rstrip(b"/") + b"/" for root in self.roots)
        return next(path[len(root) :] for root in fitting if path.startswith(root))


def teller(
    resolution: Resolution,
    store: Store,
    roots: Sequence[bytes],
    host: str,
    unseen: str = Running.unseen,
) -> Teller:
    """The teller of a run whose rules were compiled for this store."""
    return Teller(resolution, scripted(store), roots, host, unseen)


def _said(setting: Setting, short: bytes) -> Row:
    value = setting.value.replace(b"@host", short)
    return {"hint": setting.hint, "key": setting.key, "value": value, "state": "set", "why": ""}
