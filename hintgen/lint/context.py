"""What a rule may ask: the run as SQL, the settings, the hints in force."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.execution.resources import Resources, cores
from tracehint.analyzer.execution.threads import beside
from tracehint.analyzer.memory import give_back
from tracehint.hintgen import query
from tracehint.hintgen.lint.finding import Finding, LintRule, Savings
from tracehint.hintgen.lint.settings import Settings
from tracehint.hintgen.summary.labelled import Labelled
from tracehint.hintgen.summary.saved import Saved, saved
from tracehint.hintgen.users import Users, users_of

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.schemas.store import Bundle

# Columns of nearly every rule, and what it groups by: numbers of texts; `f` is the files table.
FILES_SQL = """
    any_value(f.template) AS template,
    count(DISTINCT f.named) AS files,
    list_distinct(min(f.path, 5)) AS examples,
    coalesce(min(ft.producers), '') AS producers,
    coalesce(min(ft.consumers), '') AS consumers"""
GROUP_SQL = "f.shape, ft.made, ft.used"
# Mean weighted by bytes, so that a sure tiny file does not lend its confidence to a big one.
CONFIDENCE_SQL = """coalesce(sum(p.confidence * greatest(f.size_bytes, 1))
    / sum(greatest(f.size_bytes, 1)), min(p.confidence), 1.0) AS confidence"""


def set_sql(path: str) -> str:
    """SQL: what the names of a set share that belongs together: `db/ref` of `db/ref.nsq`."""
    return f"regexp_replace({path}, '[.][^./]*$', '')"


# What the cost model's choice for a label saves; where it keeps the default, nothing.
SAVES_SQL = """greatest(0, sum(p.saves_bytes))::BIGINT AS network_bytes,
    greatest(0, sum(p.saves_wait_bytes))::BIGINT AS waiting_bytes"""


_OF_RULES = """
    SELECT view_name, true FROM duckdb_views() WHERE regexp_matches(view_name, '^[bd]_')
    UNION ALL
    SELECT table_name, false FROM duckdb_tables() WHERE regexp_matches(table_name, '^[bd]_')"""


@dataclass
class Context:
    """One run under the linter. `con` is made at the first question.

    `cluster`: where the next run takes place, for rules that argue with predicted seconds.
    `owned`: tables of the bundle may go when nothing here needs them.
    """

    analysis: Analysis
    bundle: Bundle | None = None
    settings: Settings = field(default_factory=Settings)
    hints_in_force: HintFile | None = None
    bundle_name: str = "RUN.trace"
    cluster: Cluster | None = None
    owned: bool = False

    @classmethod
    def of(cls, run: Input, **rest: Any) -> Context:
        """The run, whose tables may go; `rest`: further fields. Its bundle is read while it is
        found out who uses which file. Labels of edges go."""
        from tracehint.hintgen.lint.facts import without_edge_labels

        run.analysis = without_edge_labels(run.analysis)
        reading = beside(lambda: run.bundle, Resources(cores()))
        users = users_of(run.analysis)
        context = cls(run.analysis, reading(), owned=True, **rest)
        context.users = users
        return context

    @functools.cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The run as SQL tables: query.connect's, the views below, `in_force`."""
        from tracehint.hintgen.lint import facts
        from tracehint.hintgen.lint.in_force import add_in_force

        users = self.users
        give_back()
        con = query.connect(facts.without_edge_labels(self.analysis), self.bundle, users)
        give_back()
        facts.add_views(con, self.analysis, users)
        add_in_force(con, self.bundle, self.analysis.run["data_roots"], self.hints_in_force)
        if self.bundle is not None:
            facts.add_bundle_views(con, self.analysis, self.bundle, owned=self.owned)
        give_back()
        return con

    @functools.cached_property
    def users(self) -> Users:
        """Who made and who read each file."""
        return users_of(self.analysis)

    def release(self) -> None:
        """Let go of what rules alone ask: the tables of the bundle, and what is declared."""
        for name, view in self.con.execute(_OF_RULES).fetchall():
            if view:
                self.con.unregister(name)
            else:
                self.con.execute(f'DROP TABLE "{name}"')
        give_back()

    def release_users(self) -> None:
        """Let go of who made and who read each file, as arrays: pictures ask SQL."""
        self.__dict__.pop("users", None)
        give_back()

    def rows(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """Rows of a question; `$name` stands for a parameter or a setting of that name."""
        used = {
            row.name: getattr(self.settings, row.name)
            for row in fields(self.settings)
            if f"${row.name}" in sql
        }
        used |= {name: value for name, value in parameters.items() if f"${name}" in sql}
        return query.rows(self.con, sql, used)

    @functools.cached_property
    def saved(self) -> Saved:
        """What all placement hints that were not in force would save."""
        sql = "SELECT file FROM files SEMI JOIN in_force USING (path_text)"
        hinted = self.con.execute(sql).fetchall() if self.hinted else ()
        return saved(self.labelled, [file for (file,) in hinted])

    @functools.cached_property
    def labelled(self) -> Labelled:
        """The file versions by their label."""
        return Labelled(self.analysis)

    @property
    def nodes(self) -> int:
        """Nodes that the cost model counted with."""
        return max(2, int(self.analysis.run.get("nodes") or 2))

    @property
    def has(self) -> frozenset[str]:
        """Facts at hand, as LintRule.needs names them."""
        found = set()
        if self.bundle is not None:
            found.add("bundle")
            if self.bundle.tables["declared_tasks"].num_rows:
                found.add("declared")
        if len(self.analysis.run.get("hosts") or []) > 1:
            found.add("hosts")
        return frozenset(found)

    @property
    def hints_command(self) -> str:
        """The command line that writes the hints a placement finding asks for."""
        name = shlex.quote(self.bundle_name)
        return (
            f"tracehint hints {name} -o hints.json && "
            f"tracehint emit hints.json --store xattr --like {name} -o hints.sh"
        )

    @functools.cached_property
    def hinted(self) -> bool:
        """Whether any hint was in force."""
        known = self.con.execute("SELECT count(*) FROM in_force").fetchone()
        return bool(known and known[0])

    def placement_assumed(self) -> tuple[str, ...]:
        """What a placement finding takes for granted."""
        placement = self.analysis.options.default_placement
        where = {"striped": f"striped over {self.nodes} nodes", "local": "on the writer's node"}
        return (
            f"default placement: {where.get(placement, placement)}",
            "no hint on these files" if self.hinted else "no hint in force (none was seen)",
        )

    def finding(
        self,
        rule: LintRule,
        row: dict[str, Any],
        message: str,
        *,
        fix: str = "",
        evidence: Iterable[str] = (),
        assumed: Iterable[str] = (),
        severity: str = "",
    ) -> Finding:
        """A finding from a row that holds FILES_SQL's columns and any of bytes, network_bytes,
        waiting_bytes, storage_bytes, gb_hours, operations, confidence; `evidence` names further
        columns."""
        return Finding(
            code=rule.code,
            name=rule.name,
            severity=severity or rule.severity,
            message=message,
            template=row["template"] or "",
            files=int(row["files"]),
            bytes=int(row["bytes"] or 0),
            saves=Savings(
                network_bytes=int(row.get("network_bytes") or 0),
                waiting_bytes=int(row.get("waiting_bytes") or 0),
                storage_bytes=int(row.get("storage_bytes") or 0),
                gb_hours=round(float(row.get("gb_hours") or 0.0), 4),
                operations=int(row.get("operations") or 0),
            ),
            confidence=round(min(1.0, max(0.0, float(row.get("confidence", 1.0)))), 3),
            fix=fix or self.hints_command,
            examples=tuple(bytes(p) for p in row.get("examples") or ()),
            producers=row.get("producers") or "",
            consumers=row.get("consumers") or "",
            evidence={name: row[name] for name in evidence},
            assumed=tuple(assumed),
        )
