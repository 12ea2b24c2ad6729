"""The summary that `analyze` and `profile` print: what ran, what moved, where hints would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehint.analyzer.patterns.evidence import saved_seconds
from tracehint.analyzer.text import printable, shortened
from tracehint.hintgen.summary.console import KEEP, heading, name_of, table_of, wrapped
from tracehint.hintgen.summary.saved import saved
from tracehint.hintgen.summary.tallies import stages, totals
from tracehint.hintgen.summary.words import advice, why
from tracehint.hintgen.text.units import plural, seconds, size

if TYPE_CHECKING:
    from rich.console import Console

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.summary.labelled import Labelled

_STAGES, _TOP, _NOTES = 12, 8, 8
_NAME = 30  # characters of a file's name that a line should have room for


def print_summary(analysis: Analysis, console: Console) -> None:
    """Print the summary; fits 80 columns."""
    from tracehint.hintgen.summary.labelled import Labelled

    labelled = Labelled(analysis)
    for text in analysis.run.get("troubles", []):
        wrapped(console, text, "", "bold red")
    _header(analysis, console)
    _stages(analysis, console)
    _mix(analysis, labelled, console)
    _best(analysis, labelled, console)
    _completeness(analysis, console)


def _header(analysis: Analysis, console: Console) -> None:
    from rich.text import Text

    t = totals(analysis)
    run = analysis.run
    console.print(
        Text(name_of(" ".join(run["command"]) or "(imported run)", console.width), "bold")
    )
    words = [
        f"{plural(t['tasks'], 'task')} of {plural(t['types'], 'type')}",
        plural(t["files"], "file"),
        f"{size(t['read'])} read",
        f"{size(t['written'])} written",
        seconds(run["duration_s"]),
    ]
    if t["failed"]:
        words.insert(1, f"{t['failed']:,} failed")
    wrapped(console, ", ".join(word.replace(" ", KEEP) for word in words))
    if "between_sites_bytes" in run:
        console.print(
            f"{plural(len(run['sites']), 'site')};"
            f" {size(run['between_sites_bytes'])} read from tasks of another site"
        )
    wrapped(console, f"{_origin(run)}; savings counted for {_nodes(run)}")


# who says how many nodes -> words
_NODES_FROM = {
    "given": "",
    "hosts": " (the run's hosts)",
    "tasks": " (its most tasks at one time; tell your cluster's with --nodes)",
}


def _nodes(run: dict[str, Any]) -> str:
    return plural(run["nodes"], "node") + _NODES_FROM.get(run.get("nodes_from", ""), "")


def _origin(run: dict[str, Any]) -> str:
    """Where the run was, and who saw it."""
    hosts = name_of(run["hosts"][0], 30) if len(run["hosts"]) == 1 else f"{len(run['hosts'])} hosts"
    collector = name_of(run["collector"] or "unknown", 30)
    source = collector.removeprefix("import:")
    if source != collector:
        return f"ran on {hosts}, imported ({source})"
    return f"recorded on {hosts} by {collector}"


def _stages(analysis: Analysis, console: Console) -> None:
    rows = stages(analysis)
    if not rows:
        return
    heading(console, "Stages, in order of their first task")
    table = table_of(
        ("task type", "left"),
        ("tasks", "right"),
        ("read", "right"),
        ("written", "right"),
        ("task time", "right"),
    )
    shown = rows
    if len(rows) > _STAGES:
        keep = sorted(rows, key=lambda r: (-(r["read"] + r["written"]), r["first"]))[: _STAGES - 1]
        shown = [r for r in rows if r in keep]
        rest = [r for r in rows if r not in keep]
        numbers = ("tasks", "read", "written", "seconds")
        other = {k: sum(r[k] for r in rest) for k in numbers}
        shown.append({"type": f"({plural(len(rest), 'other type')})", **other})
    for r in shown:
        table.add_row(
            name_of(r["type"], max(20, console.width - 48)),
            f"{r['tasks']:,}",
            size(r["read"]),
            size(r["written"]),
            seconds(r["seconds"]),
        )
    console.print(table)


def _mix(analysis: Analysis, labelled: Labelled, console: Console) -> None:
    rows = labelled.mix()
    if not rows:
        console.print("\nNo file was handed from task to task: no patterns.")
        return
    heading(console, "Patterns, by bytes")
    table = table_of(
        ("pattern", "left"),
        ("files", "right"),
        ("bytes", "right"),
        ("share", "right"),
        ("", "left"),
        ("saves", "right"),
        ("waiting", "right"),
    )
    total = sum(r["bytes"] for r in rows) or 1
    for r in rows:
        share = r["bytes"] / total
        table.add_row(
            r["pattern"].replace("_", " "),
            f"{r['files']:,}",
            size(r["bytes"]),
            f"{share:.0%}",
            "█" * round(share * 12),
            _saved(r["saves"]),
            _saved(r["waits"]),
        )
    console.print(table)
    if any(r["saves"] or r["waits"] for r in rows):
        wrapped(console, f"All hints together: {saved(labelled).text}")
        text = (
            "saves: bytes that need not cross the network; waiting: bytes on the busiest link that"
            f" readers need not wait for; against {analysis.options.default_placement} placement"
        )
        wrapped(console, text, style="dim")


def _saved(count: int) -> str:
    return size(count) if count else "-"


def _best(analysis: Analysis, labelled: Labelled, console: Console) -> None:
    """Files (as templates) whose hint saves most; without any, the largest and why not."""
    rows = labelled.best(_TOP)
    title = "Where hints would save most"
    if not rows:
        rows = labelled.largest(3)
        cost = size(analysis.options.call_cost_bytes)
        title = f"No hint would save {cost} or more; the largest files"
    if not rows:
        return
    heading(console, title)
    for r in rows:
        _flow(r, analysis, console)


def _flow(r: dict[str, Any], analysis: Analysis, console: Console) -> None:
    """What files, what is saved, why and how; the saving has its own line where room is short."""
    from rich.text import Text

    name = name_of(r["name"], console.width)
    others = f" and {plural(r['others'], 'other name')}" if r["others"] else ""
    count = f"{r['files']:,} × " if r["files"] > 1 else ""
    gain = _gain(r, analysis.options.link_rates)
    sure = "" if r["confidence"] >= 0.95 else f", confidence {r['confidence']:.2f}"
    label = r["pattern"].replace("_", " ") + sure
    room = console.width - len(count) - len(others) - len(label) - 2
    inline = room - len(gain) - 2 >= min(len(name), _NAME)
    line = Text(count + shortened(name, max(16, room - inline * (len(gain) + 2))) + others, "cyan")
    line.append("  " + label, "bold")
    if inline:
        line.append("  " + gain, "green")
    console.print(line)
    if not inline:
        wrapped(console, gain, "    ", "green")
    words = [why(r["pattern"], r["evidence"]), advice(r["pattern"], r["placement"])]
    text = ": ".join(word for word in words if word)
    several = f"{r['groups']:,} groups like this: " if r["groups"] > 1 else ""
    wrapped(console, several + text, "    ", "dim")


def _gain(r: dict[str, Any], rates: tuple[float, float] | None) -> str:
    """What hints on the files of a row save: bytes and, with rates of links, seconds."""
    parts = []
    if r["saves"] > 0:
        parts.append(f"saves {size(r['saves'])}")
    if r["waits"] > 0:
        parts.append(f"{size(r['waits'])} less waiting")
    if r["saves"] < 0:
        parts.append(f"{size(-r['saves'])} more copied")
    if rates and r["waits"] > 0:
        low, high = saved_seconds(r["waits"], r["saves"], rates)
        parts.append(f"{seconds(float(low))} to {seconds(float(high))}")
    return ", ".join(parts) if parts else size(r["bytes"])


def _completeness(analysis: Analysis, console: Console) -> None:
    known = analysis.run["completeness"]
    score, lost = known["score"], analysis.run["lost_events"]
    console.print()
    whole = score >= 1 and not lost and not known.get("losses")
    if whole and not analysis.run.get("troubles"):
        text = "Nothing was lost."
    elif whole:
        text = "Nothing was lost of what ran."
    elif score >= 1 and not lost:
        text = "No access was lost."
    else:
        text = f"Not everything was seen (completeness {score:.2f}, {plural(lost, 'lost event')})."
    if known["blind_to"]:
        text += " This collector cannot see: " + ", ".join(map(printable, known["blind_to"])) + "."
    wrapped(console, text, "", "" if whole else "yellow")
    notes = known["notes"]
    for note in notes[:_NOTES]:
        wrapped(console, "- " + printable(note), "  ")
    if len(notes) > _NOTES:
        console.print(f"  - and {plural(len(notes) - _NOTES, 'more note')}")
