"""Context of the lint rules: the run as SQL tables, the settings, the hints in force."""

from __future__ import annotations

import functools
import os.path
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.arrays import ints
from tracehint.analyzer.execution.resources import Resources, cores, start_beside
from tracehint.analyzer.memory import give_back
from tracehint.hintgen import query
from tracehint.hintgen.file_users import Users, users_of
from tracehint.hintgen.lint.config import Settings
from tracehint.hintgen.lint.edits import edit_of, engine_of
from tracehint.hintgen.lint.finding import Finding, LintRule, Savings
from tracehint.hintgen.summary.gain import Simulation, Where, built_in
from tracehint.hintgen.summary.labelled import Labelled
from tracehint.hintgen.text.textfile import unused_name

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.schemas.store import Bundle


# Hints in force during the run: found in the trace, or given by the user.


def add_in_force(
    con: duckdb.DuckDBPyConnection,
    bundle: Bundle | None,
    data_roots: Sequence[str],
    stated: HintFile | None,
) -> None:
    """Fill the table `in_force` with hints set by `tracehint run`, set by setfattr during the run,
    read from the files after it, or given by the user (`stated`)."""
    seen: list[tuple[str, str, str, float | None]] = []
    if bundle is not None:
        seen = [
            *_list_set_hints(bundle, data_roots),
            *_find_setfattr_calls(bundle, data_roots),
            *_list_read_attributes(con, bundle),
        ]
    rows = [*seen, *(_list_stated_hints(con, stated) if stated is not None else ())]
    if rows:
        con.executemany("INSERT INTO in_force VALUES (?, ?, ?, ?)", rows)
        # A hint on a directory is the default of the files in it.
        con.execute(
            """INSERT INTO in_force
               SELECT DISTINCT f.path_text, i.name, i.value, i.set_s
               FROM in_force i JOIN files f ON f.dir = i.path_text AND i.path_text <> ''
               WHERE NOT EXISTS (FROM in_force o WHERE o.path_text = f.path_text
                                 AND o.name = i.name)"""
        )


def _list_set_hints(
    bundle: Bundle, data_roots: Sequence[str]
) -> Iterator[tuple[str, str, str, float]]:
    """Yield the hints that `tracehint run` set on new files and that were set at the end."""
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    settings = bundle.tables["settings"]
    origin = bundle.manifest.started_ns
    held = settings.filter(pc.equal(settings.column("state"), "set"))
    for row in held.select(["path", "hint", "t_ns"]).to_pylist():
        for hint in row["hint"].split(" "):
            name, _, value = hint.partition("=")
            path = _relative(text(row["path"]), data_roots)
            yield path, name, value, (row["t_ns"] - origin) / 1e9


def _find_setfattr_calls(
    bundle: Bundle, data_roots: Sequence[str]
) -> Iterator[tuple[str, str, str, float]]:
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    processes = bundle.tables["processes"]
    # Only setfattr commands: a program that calls setxattr itself is not covered.
    exe = pc.fill_null(pc.ends_with(processes.column("exe"), b"setfattr"), False)
    origin = bundle.manifest.started_ns
    for row in processes.filter(exe).select(["argv", "cwd", "start_ns"]).to_pylist():
        name, value, files = parse_setfattr(row["argv"])
        if name:
            for file in files:
                path = text(os.path.normpath(os.path.join(row["cwd"] or b"/", file)))  # noqa: PTH118
                yield _relative(path, data_roots), name, value, (row["start_ns"] - origin) / 1e9


def _list_read_attributes(
    con: duckdb.DuckDBPyConnection, bundle: Bundle
) -> Iterator[tuple[str, str, str, None]]:
    """Yield the recorded `user.` attributes of files; the time of setting is unknown."""
    import pyarrow.compute as pc

    rows = bundle.tables["attributes"]
    rows = rows.filter(pc.starts_with(rows.column("name"), "user."))
    if rows.num_rows:
        con.register("read_attributes", rows)
        found = con.execute(
            """SELECT f.path_text, split_part(a.name, '.', -1), a.value
               FROM read_attributes a JOIN files f USING (file)"""
        ).fetchall()
        con.unregister("read_attributes")
        yield from ((path, name, value, None) for path, name, value in found)


def _relative(path: str, data_roots: Sequence[str]) -> str:
    from tracehint.hintgen.text.escape import text

    for root in sorted(data_roots, key=len, reverse=True):
        prefix = text(root).rstrip("/") + "/"
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def parse_setfattr(argv: list[bytes]) -> tuple[str, str, list[bytes]]:
    """Return attribute (last component of its name), value and files of a setfattr command.

    >>> parse_setfattr([b"setfattr", b"-n", b"user.DP", b"-v", b"local", b"a", b"b"])
    ('DP', 'local', [b'a', b'b'])
    >>> parse_setfattr([b"setfattr", b"-n", b"user.DP", b"-v", b"0x6c6f63616c", b"a"])[1]
    'local'
    """
    name = value = b""
    files: list[bytes] = []
    rest = iter(argv[1:])
    for word in rest:
        if word in (b"-n", b"--name"):
            name = next(rest, b"")
        elif word in (b"-v", b"--value"):
            value = next(rest, b"")
        elif word.startswith(b"--name="):
            name = word[7:]
        elif word.startswith(b"--value="):
            value = word[8:]
        elif word == b"--":
            files += rest
        elif not word.startswith(b"-"):
            files.append(word)
    short = name.rsplit(b".", 1)[-1].decode("utf-8", "replace")
    return short, _decode_value(value).decode("utf-8", "replace"), files


def _decode_value(value: bytes) -> bytes:
    """Decode a value as setfattr does: text, `0x` hexadecimal, `0s` base64, or in quotes."""
    import base64
    import binascii

    try:
        if value[:2] in (b"0x", b"0X"):
            return binascii.unhexlify(value[2:])
        if value[:2] in (b"0s", b"0S"):
            return base64.b64decode(value[2:])
    except ValueError:
        return value
    return value[1:-1] if len(value) > 1 and value[:1] == value[-1:] == b'"' else value


def _list_stated_hints(
    con: duckdb.DuckDBPyConnection, hints: HintFile
) -> Iterator[tuple[str, str, str, None]]:
    from tracehint.hintgen.match.match import match

    paths = con.execute("SELECT DISTINCT path, path_text FROM files WHERE data").fetchall()
    found = match(hints, [bytes(path) for path, _ in paths])
    for (_, shown), hit in zip(paths, found, strict=True):
        for name, value in hit.values.items():
            yield shown, name, value, None


# Columns of nearly every rule and its grouping keys (codes of texts). `f`: files, `ft`: file_types.
FILES_SQL = """
    any_value(f.template) AS template,
    count(DISTINCT f.named) AS files,
    list_distinct(min(f.path, 5)) AS examples,
    coalesce(min(ft.producers), '') AS producers,
    coalesce(min(ft.consumers), '') AS consumers"""
GROUP_SQL = "f.shape, ft.made, ft.used"
# Mean weighted by bytes: a tiny file must not raise the confidence of a large one.
CONFIDENCE_SQL = """coalesce(sum(p.confidence * greatest(f.size_bytes, 1))
    / sum(greatest(f.size_bytes, 1)), min(p.confidence), 1.0) AS confidence"""


def set_sql(path: str) -> str:
    """Return SQL for the stem shared by the files of a set: `db/ref` of `db/ref.nsq`."""
    return f"regexp_replace({path}, '[.][^./]*$', '')"


# The files whose placement the finding recommends; the gain is simulated.
PLACED_SQL = "list(f.file) AS placed"

_RULE_TABLES_SQL = """
    SELECT view_name, true FROM duckdb_views() WHERE regexp_matches(view_name, '^[bd]_')
    UNION ALL
    SELECT table_name, false FROM duckdb_tables() WHERE regexp_matches(table_name, '^[bd]_')"""


@dataclass
class Context:
    """One run under the linter. `con` is created by the first query.

    `where`: the cluster on which gains are simulated; None: the built-in model.
    `owned`: bundle tables may be dropped once the linter does not need them.
    """

    analysis: Analysis
    bundle: Bundle | None = None
    settings: Settings = field(default_factory=Settings)
    hints_in_force: HintFile | None = None
    bundle_name: str = "RUN.trace"
    where: Where | None = None
    owned: bool = False

    @classmethod
    def of(cls, run: Input, **rest: Any) -> Context:
        """Return the context of a run whose tables may be dropped; `rest`: further fields. The
        bundle is read in parallel with `users_of`; edge labels are dropped."""
        from tracehint.hintgen.lint.facts import without_edge_labels

        run.analysis = without_edge_labels(run.analysis)
        reading = start_beside(lambda: run.bundle, Resources(cores()))
        users = users_of(run.analysis)
        context = cls(run.analysis, reading(), owned=True, **rest)
        context.users = users
        return context

    @functools.cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The run as SQL tables: those of query.connect, the views of facts.py, `in_force`."""
        from tracehint.hintgen.lint import facts

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
        """Producers and readers of each file."""
        return users_of(self.analysis)

    def release(self) -> None:
        """Drop the tables that only rules query: those of the bundle and of the declared graph."""
        for name, view in self.con.execute(_RULE_TABLES_SQL).fetchall():
            if view:
                self.con.unregister(name)
            else:
                self.con.execute(f'DROP TABLE "{name}"')
        give_back()

    def release_users(self) -> None:
        """Release the arrays of `users`: drawings use the SQL tables."""
        self.__dict__.pop("users", None)
        give_back()

    def rows(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a query; `$name` is the parameter or setting of that name."""
        used = {
            row.name: getattr(self.settings, row.name)
            for row in fields(self.settings)
            if f"${row.name}" in sql
        }
        used |= {name: value for name, value in parameters.items() if f"${name}" in sql}
        return query.rows(self.con, sql, used)

    @functools.cached_property
    def simulation(self) -> Simulation:
        """Simulation of the run on the cluster, with and without the recommended placements."""
        return Simulation(self.analysis, self.where or built_in(), self.labelled)

    @functools.cached_property
    def labelled(self) -> Labelled:
        """File versions by label."""
        return Labelled(self.analysis)

    @property
    def nodes(self) -> int:
        """Number of nodes in the cost model of the analysis, at least 2."""
        return max(2, int(self.analysis.run.get("nodes") or 2))

    @property
    def has(self) -> frozenset[str]:
        """Available facts, named as in LintRule.needs."""
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
        """Command line that writes the hints for a placement finding, or the plan where the store
        keeps no files on nodes."""
        name = shlex.quote(self.bundle_name)
        if self.where is not None and self.where.staging:
            cluster = shlex.quote(self.where.given or self.where.cluster.name)
            plan = unused_name("plan.json")
            emit = f"--workflow-engine json -o {unused_name('placement.json')}"
            if self.engine == "makeflow":
                last = (self.analysis.run["command"] or ["-"])[-1]
                workflow = "Makeflow" if last.startswith("-") or last == "makeflow" else last
                emit = f"{shlex.quote(workflow)} --workflow-engine slurm --local-dir /tmp "
                emit += f"-o {unused_name('jobs.sh')}"
            return (
                f"tracehint plan {name} --cluster {cluster} -o {plan} && "
                f"tracehint emit {plan} {emit}"
            )
        hints = unused_name("hints.json")
        return (
            f"tracehint hints {name} -o {hints} && tracehint emit {hints} --store xattr "
            f"--like {name} -o {unused_name('hints.sh', '.data')}"
        )

    @functools.cached_property
    def hinted(self) -> bool:
        """Whether any hint was in force."""
        known = self.con.execute("SELECT count(*) FROM in_force").fetchone()
        return bool(known and known[0])

    def placement_assumed(self) -> tuple[str, ...]:
        """Return the assumptions of a placement finding."""
        placement = self.analysis.options.default_placement
        if self.where is not None and self.where.staging:
            placement = f"on the servers of {self.where.cluster.name}"
        where = {"striped": "striped over the nodes", "local": "on the writer's node"}
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
        """Make a finding from a row with the columns of FILES_SQL and any of bytes, storage_bytes,
        gb_hours, operations, confidence, placed; `evidence` names further columns."""
        found = Finding(
            code=rule.code,
            name=rule.name,
            severity=severity or rule.severity,
            message=message,
            template=row["template"] or "",
            files=int(row["files"]),
            bytes=int(row["bytes"] or 0),
            saves=Savings(
                storage_bytes=int(row.get("storage_bytes") or 0),
                gb_hours=round(float(row.get("gb_hours") or 0.0), 4),
                operations=int(row.get("operations") or 0),
            ),
            confidence=round(min(1.0, max(0.0, float(row.get("confidence", 1.0)))), 3),
            fix=fix,
            examples=tuple(bytes(p) for p in row.get("examples") or ()),
            producers=row.get("producers") or "",
            consumers=row.get("consumers") or "",
            evidence={name: row[name] for name in evidence},
            assumed=tuple(assumed),
            placed=ints(row["placed"]) if row.get("placed") is not None else None,
        )
        return found if fix else replace(found, fix=self._find_edit(found) or self.hints_command)

    def _find_edit(self, finding: Finding) -> str:
        """Return the lines for the workflow file, if the store keeps no files on nodes."""
        if self.where is None or not self.where.staging:
            return ""
        return edit_of(finding, self.engine, staging=True)

    @functools.cached_property
    def engine(self) -> str:
        """Workflow engine of the run; empty if unknown."""
        return engine_of(self.analysis)
