"""The summary that `analyze` and `profile` print: what ran, what moved, where hints would help."""

from __future__ import annotations

import json
import os
from typing import IO, TYPE_CHECKING, Any

from tracehint.analyzer.text import human_bytes, human_seconds, printable, shortened
from tracehint.analyzer.words import advice, why

if TYPE_CHECKING:
    import duckdb
    from rich.console import Console

    from tracehint.analyzer.model import Analysis

_STAGES, _TOP, _NOTES = 12, 8, 8

_TOTALS = """
select (select count(*) from tasks where not engine) as tasks,
    (select count(distinct type) from tasks where not engine) as types,
    (select count(distinct lineage) from files where role <> 'software') as files,
    (select coalesce(sum(bytes), 0)::bigint from producers join work using (task)) as written,
    (select coalesce(sum(bytes), 0)::bigint from consumers join work using (task)) as read,
    (select count(*) from tasks where not engine and exit_status <> 0) as failed
"""

_BY_STAGE = """
with r as (select task, sum(bytes) as bytes from consumers group by task),
w as (select task, sum(bytes) as bytes from producers group by task)
select type, count(*) as tasks, coalesce(sum(r.bytes), 0)::bigint as read,
    coalesce(sum(w.bytes), 0)::bigint as written,
    coalesce(sum(end_s - start_s), 0)::double as seconds, min(start_s) as first
from tasks left join r using (task) left join w using (task)
where not engine group by type order by first, type
"""

# One row per labelled file version: bytes are those that all its readers read, or, where
# nobody reads, its size.
_LABELLED = """
create temp table labelled as
with base as (
select p.file, p."group", pattern, evidence, placement, saves_bytes,
    coalesce(saves_wait_bytes, 0) as wait_bytes,
    confidence, coalesce(c.bytes, size_bytes, 0) as bytes,
    regexp_replace(path_text, '[0-9]+', '#', 'g') as template, path_text as path
from patterns p join files using (file) join names using (file)
left join (select file, sum(unique_bytes) as bytes from consumers group by file) c using (file)
where edge is null and "primary")
-- files of one group are told together: by the kinds of names in it
select *, coalesce(kinds, [template]) as kinds_of
from base left join (select "group", list_sort(list(distinct template)) as kinds
    from base where "group" is not null group by "group") using ("group")
"""

_MIX = """
select pattern, count(*) as files, sum(bytes)::bigint as bytes, sum(saves_bytes)::bigint as saves,
    sum(wait_bytes)::bigint as waits
from labelled group by pattern order by bytes desc, pattern
"""

_BEST = """
select kinds_of, any_value(kind) as template, pattern, count(*) as files,
    sum(bytes)::bigint as bytes,
    sum(saves_bytes)::bigint as saves, sum(wait_bytes)::bigint as waits,
    min(path) as path, arg_max(evidence, saves_bytes + wait_bytes) as evidence,
    arg_max(placement, saves_bytes + wait_bytes) as placement, min(confidence) as confidence
from labelled join (
    select kinds_of, pattern, arg_max(template, kind_bytes) as kind from (
        select kinds_of, pattern, template, sum(bytes) as kind_bytes from labelled group by all)
    group by all) using (kinds_of, pattern)
where placement <> 'default'
group by kinds_of, pattern order by saves + waits desc, template, pattern limit {top}
"""

_LARGEST = _BEST.replace("where placement <> 'default'", "where pattern <> 'stage_out'").replace(
    "saves + waits desc, template", "bytes desc, template"
)


def console_for(stream: IO[str]) -> Console:
    """A console that never interprets names: colour on terminals only, not with NO_COLOR."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR")) or not stream.isatty()
    return Console(
        file=stream, highlight=False, markup=False, emoji=False, no_color=plain, soft_wrap=False,
        force_terminal=False if plain else None,
    )  # fmt: skip


def print_summary(analysis: Analysis, console: Console) -> None:
    """Print the summary; fits 80 columns."""
    from tracehint.analyzer.output import names_table
    from tracehint.analyzer.sql import connect

    con = connect()
    try:
        for name, table in analysis.tables().items():
            con.register(name, table)
        con.register("names", names_table(analysis.files))
        con.execute("create temp view work as select task from tasks where not engine")
        con.execute(_LABELLED)
        _header(analysis, con, console)
        _stages(con, console)
        _mix(analysis, con, console)
        _best(analysis, con, console)
        _completeness(analysis, console)
    finally:
        con.close()


def _rows(con: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = con.sql(query).to_arrow_table().to_pylist()
    return rows


def _name(text: str, width: int) -> str:
    return shortened(printable(text), width)


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def _header(analysis: Analysis, con: duckdb.DuckDBPyConnection, console: Console) -> None:
    from rich.text import Text

    (t,) = _rows(con, _TOTALS)
    run = analysis.run
    console.print(Text(_name(" ".join(run["command"]) or "(imported run)", console.width), "bold"))
    hosts = _name(run["hosts"][0], 30) if len(run["hosts"]) == 1 else f"{len(run['hosts'])} hosts"
    words = [
        f"{_many(t['tasks'], 'task')} of {_many(t['types'], 'type')}",
        _many(t["files"], "file"),
        f"{human_bytes(t['read'])} read",
        f"{human_bytes(t['written'])} written",
        human_seconds(run["duration_s"]),
    ]
    if t["failed"]:
        words.insert(1, f"{t['failed']:,} failed")
    console.print(", ".join(words), style="none")
    if "between_sites_bytes" in run:
        console.print(
            f"{_many(len(run['sites']), 'site')};"
            f" {human_bytes(run['between_sites_bytes'])} read from tasks of another site"
        )
    console.print(
        f"recorded on {hosts} by {_name(run['collector'] or 'unknown', 30)};"
        f" savings for {_many(run['nodes'], 'node')}"
    )


def _table(*columns: tuple[str, str]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name, justify in columns:
        left = justify == "left"
        table.add_column(
            name, justify=justify, no_wrap=True, overflow="ellipsis", ratio=None,  # type: ignore[arg-type]
            min_width=8 if left else None,
        )  # fmt: skip
    return table


def _title(console: Console, text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(text, "bold"))


def _wrapped(console: Console, text: str, indent: str, style: str = "") -> None:
    """A paragraph, indented; long words (paths) are cut to fit."""
    import textwrap

    from rich.text import Text

    for line in textwrap.wrap(text, max(20, console.width - 1 - len(indent))):
        console.print(Text(indent + line, style))


def _stages(con: duckdb.DuckDBPyConnection, console: Console) -> None:
    rows = _rows(con, _BY_STAGE)
    if not rows:
        return
    _title(console, "Stages, in order of their first task")
    table = _table(
        ("task type", "left"), ("tasks", "right"), ("read", "right"), ("written", "right"),
        ("task time", "right"),
    )  # fmt: skip
    shown = rows
    if len(rows) > _STAGES:
        keep = sorted(rows, key=lambda r: (-(r["read"] + r["written"]), r["first"]))[: _STAGES - 1]
        shown = [r for r in rows if r in keep]
        rest = [r for r in rows if r not in keep]
        numbers = ("tasks", "read", "written", "seconds")
        other = {k: sum(r[k] for r in rest) for k in numbers}
        shown.append({"type": f"({_many(len(rest), 'other type')})", **other})
    for r in shown:
        table.add_row(
            _name(r["type"], max(20, console.width - 48)), f"{r['tasks']:,}",
            human_bytes(r["read"]), human_bytes(r["written"]), human_seconds(r["seconds"]),
        )  # fmt: skip
    console.print(table)


def _mix(analysis: Analysis, con: duckdb.DuckDBPyConnection, console: Console) -> None:
    rows = _rows(con, _MIX)
    if not rows:
        console.print("\nNo file was handed from task to task: no patterns.")
        return
    _title(console, "Patterns, by bytes")
    table = _table(
        ("pattern", "left"), ("files", "right"), ("bytes", "right"), ("share", "right"),
        ("", "left"), ("saves", "right"), ("waiting", "right"),
    )  # fmt: skip
    total = sum(r["bytes"] for r in rows) or 1
    for r in rows:
        share = r["bytes"] / total
        table.add_row(
            r["pattern"].replace("_", " "), f"{r['files']:,}", human_bytes(r["bytes"]),
            f"{share:.0%}", "█" * round(share * 12), _saved(r["saves"]), _saved(r["waits"]),
        )  # fmt: skip
    console.print(table)
    if any(r["saves"] or r["waits"] for r in rows):
        text = (
            "saves: bytes that need not cross the network; waiting: bytes on the busiest link that"
            f" readers need not wait for; against {analysis.options.default_placement} placement"
        )
        _wrapped(console, text, "", "dim")


def _saved(count: int) -> str:
    return human_bytes(count) if count else "-"


def _best(analysis: Analysis, con: duckdb.DuckDBPyConnection, console: Console) -> None:
    """Files (as templates) whose hint saves most; without any, the largest and why not."""
    from rich.text import Text

    rows = _rows(con, _BEST.format(top=_TOP))
    title = "Where hints would save most"
    if not rows:
        rows = _rows(con, _LARGEST.format(top=3))
        cost = human_bytes(analysis.options.call_cost_bytes)
        title = f"No hint would save {cost} or more; the largest files"
    if not rows:
        return
    _title(console, title)
    for r in rows:
        kinds = r["kinds_of"]
        name = r["template"] if r["files"] > 1 else r["path"]
        others = f" and {_many(len(kinds) - 1, 'other name')}" if len(kinds) > 1 else ""
        count = f"{r['files']:,} × " if r["files"] > 1 else ""
        gain = _gain(r, analysis.options.link_rates)
        sure = "" if r["confidence"] >= 0.95 else f", confidence {r['confidence']:.2f}"
        label = r["pattern"].replace("_", " ") + sure
        room = max(16, console.width - len(count) - len(label) - len(gain) - len(others) - 4)
        line = Text(count + _name(name, room) + others, "cyan")
        line.append("  " + label, "bold")
        line.append("  " + gain, "green")
        console.print(line)
        words = [why(r["pattern"], json.loads(r["evidence"])), advice(r["pattern"], r["placement"])]
        text = ": ".join(word for word in words if word)
        _wrapped(console, text, "    ", "dim")


def _gain(r: dict[str, Any], rates: tuple[float, float] | None) -> str:
    """What hints on the files of a row save: bytes and, with rates of links, seconds."""
    parts = []
    if r["saves"] > 0:
        parts.append(f"saves {human_bytes(r['saves'])}")
    if r["waits"] > 0:
        parts.append(f"{human_bytes(r['waits'])} less waiting")
    if r["saves"] < 0:
        parts.append(f"{human_bytes(-r['saves'])} more copied")
    if rates and r["waits"] > 0:
        low, high = r["waits"] / rates[1], (r["waits"] + max(0, r["saves"])) / rates[0]
        parts.append(f"{human_seconds(low)} to {human_seconds(high)}")
    return ", ".join(parts) if parts else human_bytes(r["bytes"])


def _completeness(analysis: Analysis, console: Console) -> None:
    from rich.text import Text

    known = analysis.run["completeness"]
    score, lost = known["score"], analysis.run["lost_events"]
    console.print()
    if score >= 1 and not lost:
        text = "Nothing was lost."
    else:
        text = f"Not everything was seen (completeness {score:.2f}, {_many(lost, 'lost event')})."
    if known["blind_to"]:
        text += " This collector cannot see: " + ", ".join(map(printable, known["blind_to"])) + "."
    console.print(Text(text, "" if score >= 1 and not lost else "yellow"))
    notes = known["notes"]
    for note in notes[:_NOTES]:
        _wrapped(console, "- " + printable(note), "  ")
    if len(notes) > _NOTES:
        console.print(f"  - and {_many(len(notes) - _NOTES, 'more note')}")
