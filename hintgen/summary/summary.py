"""Print the summary of `analyze` and `profile`: tasks, bytes, patterns, placements, gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.text import printable, shorten_head
from tracehint.hintgen.summary.console import KEEP, heading, name_of, print_wrapped, table_of
from tracehint.hintgen.summary.tallies import stages, totals
from tracehint.hintgen.summary.words import advice, why
from tracehint.hintgen.text.units import seconds, size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from rich.console import Console

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.gain import Gain
    from tracehint.hintgen.summary.gain import Simulation
    from tracehint.hintgen.summary.labelled import Labelled

_STAGES, _TOP, _NOTES = 12, 8, 8
LITTLE_WAIT, MUCH_WAIT = 0.1, 0.5  # shares of the tasks' time
_NAME = 30  # minimum characters of a file's name on a line with its gain


def print_summary(
    analysis: Analysis, console: Console, simulation: Simulation | None = None
) -> None:
    """Print the summary, with gains if a simulation is given; fits 80 columns."""
    from tracehint.hintgen.summary.labelled import Labelled

    labelled = Labelled(analysis)
    for text in analysis.run.get("troubles", []):
        print_wrapped(console, text, "", "bold red")
    _header(analysis, console)
    _stages(analysis, console)
    _mix(analysis, labelled, console)
    _groups(labelled, simulation, console)
    if simulation is not None:
        console.print()
        for line in simulation.lines():
            print_wrapped(console, line)
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
    print_wrapped(console, ", ".join(word.replace(" ", KEEP) for word in words))
    if "between_sites_bytes" in run:
        console.print(
            f"{plural(len(run['sites']), 'site')};"
            f" {size(run['between_sites_bytes'])} read from tasks of another site"
        )
    print_wrapped(console, _origin(run))


def _origin(run: dict[str, Any]) -> str:
    """Return the sentence with the hosts and the collector of the run."""
    hosts = name_of(run["hosts"][0], 30) if len(run["hosts"]) == 1 else f"{len(run['hosts'])} hosts"
    collector = name_of(run["collector"] or "unknown", 30)
    source = collector.removeprefix("import:")
    if source != collector:
        return f"ran on {hosts}, imported ({source})"
    return f"recorded on {hosts} by {collector}"


def _stages(analysis: Analysis, console: Console) -> None:
    """Print the task types with their bytes and times, and whether I/O is the bottleneck."""
    rows = stages(analysis)
    if not rows:
        return
    heading(console, "Task types, in order of their first task")
    known = any(r["cpu"] is not None or r["io_wait"] is not None for r in rows)
    table = table_of(
        ("task type", "left"),
        ("tasks", "right"),
        ("read", "right"),
        ("written", "right"),
        ("task time", "right"),
        *((("CPU time", "right"), ("I/O wait", "right")) if known else ()),
    )
    shown = rows
    if len(rows) > _STAGES:
        keep = sorted(rows, key=lambda r: (-(r["read"] + r["written"]), r["first"]))[: _STAGES - 1]
        shown = [r for r in rows if r in keep]
        rest = [r for r in rows if r not in keep]
        numbers = ("tasks", "read", "written", "seconds", "cpu", "io_wait")
        other = {k: sum(r[k] or 0 for r in rest) for k in numbers}
        shown.append({"type": f"({plural(len(rest), 'other type')})", **other})
    for r in shown:
        table.add_row(
            name_of(r["type"], max(16, console.width - (68 if known else 48))),
            f"{r['tasks']:,}",
            size(r["read"]),
            size(r["written"]),
            seconds(r["seconds"]),
            *((_time(r["cpu"]), _time(r["io_wait"])) if known else ()),
        )
    console.print(table)
    print_requested(rows, console)
    if sentence := io_bottleneck(rows):
        print_wrapped(console, sentence)


def print_requested(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Print requested and used cores and memory by task type, if an engine reports them."""
    own = [r for r in rows if r.keys() & {"cores", "memory_bytes", "peak_bytes"}][:_STAGES]
    columns = {
        "cores requested": [f"{r['cores']:,}" if "cores" in r else "-" for r in own],
        "used": [_cores_used(r) if "cores" in r else "-" for r in own],
        "memory requested": [_size(r.get("memory_bytes")) for r in own],
        "peak per task": [_size(r.get("peak_bytes")) for r in own],
    }
    columns = {name: cells for name, cells in columns.items() if set(cells) - {"-"}}
    if not columns:
        return
    heading(console, "Cores and memory, requested and used")
    table = table_of(("task type", "left"), *((name, "right") for name in columns))
    for row, *cells in zip(own, *columns.values(), strict=True):
        table.add_row(name_of(row["type"], max(16, console.width - 62)), *cells)
    console.print(table)
    if "memory requested" in columns and "peak per task" not in columns:
        print_wrapped(console, "Used memory is not recorded; the engine did not measure it.")


def _cores_used(row: dict[str, Any]) -> str:
    """Return the processor time of a task type divided by the time of its tasks."""
    known = row["cpu"] is not None and row["seconds"]
    return f"{row['cpu'] / row['seconds']:.2f}" if known else "-"


def _size(value: int | None) -> str:
    return "-" if value is None else size(value)


def _time(value: float | None) -> str:
    return "-" if value is None else seconds(value)


def io_bottleneck(rows: Sequence[dict[str, Any]]) -> str:
    """Return a sentence on the tasks' I/O wait; empty if it was not recorded."""
    known = [r for r in rows if r["io_wait"] is not None]
    took = sum(r["seconds"] for r in known)
    if not took:
        return ""
    share = sum(r["io_wait"] for r in known) / took
    most = max(known, key=lambda r: r["io_wait"])
    text = f"In the recorded run tasks waited for I/O for {share:.0%} of their time"
    if share < LITTLE_WAIT:
        return f"{text}: I/O was not the bottleneck."
    of = most["io_wait"] / sum(r["io_wait"] for r in known)
    where = f"{of:.0%} of it in {name_of(most['type'], 30)}"
    much = ": I/O was the bottleneck on that machine." if share > MUCH_WAIT else "."
    return f"{text}, {where}{much}"


def _mix(analysis: Analysis, labelled: Labelled, console: Console) -> None:
    rows = labelled.mix()
    if not rows:
        reason = "no file is an input, an output or passed from task to task"
        if analysis.edges.num_rows:
            reason = "no file passed between tasks meets the definition of a pattern"
        console.print()
        print_wrapped(console, f"No pattern: {reason}.")
        return
    heading(console, "Patterns, by bytes")
    table = table_of(
        ("pattern", "left"),
        ("files", "right"),
        ("bytes", "right"),
        ("share", "right"),
        ("", "left"),
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
        )
    console.print(table)


def _groups(labelled: Labelled, simulation: Simulation | None, console: Console) -> None:
    """Print the largest groups of files with a placement or, without any, the largest of all."""
    found: list[tuple[dict[str, Any], Gain | None]] = []
    if simulation is not None:
        found += simulation.largest(_TOP)
    title = "Placement of the largest groups of files"
    if not found:
        found = [(row, None) for row in labelled.largest(3)]
        title = "No placement is better than the default; the largest files"
    if not found:
        return
    heading(console, title)
    for row, gain in found:
        text = size(row["bytes"])
        if gain is not None and simulation is not None:
            text = gain.text(simulation.baseline)
        _group(row, text, console)


def _group(r: dict[str, Any], gain: str, console: Console) -> None:
    """Print files, pattern, gain, reason and action; gain on its own line if space is short."""
    from rich.text import Text

    name = name_of(r["name"], console.width)
    count = f"{r['files']:,} × " if r["files"] > 1 else ""
    sure = "" if r["confidence"] >= 0.95 else f", confidence {r['confidence']:.2f}"
    label = r["pattern"].replace("_", " ") + sure
    room = console.width - len(count) - len(label) - 2
    inline = room - len(gain) - 2 >= min(len(name), _NAME)
    line = Text(count + shorten_head(name, max(16, room - inline * (len(gain) + 2))), "cyan")
    line.append("  " + label, "bold")
    if inline:
        line.append("  " + gain, "green")
    console.print(line)
    if not inline:
        print_wrapped(console, gain, "    ", "green")
    words = [why(r["pattern"], r["evidence"]), advice(r["pattern"], r["placement"])]
    text = ": ".join(word for word in words if word)
    several = f"{r['groups']:,} groups like this: " if r["groups"] > 1 else ""
    print_wrapped(console, several + text, "    ", "dim")


def _completeness(analysis: Analysis, console: Console) -> None:
    known = analysis.run["completeness"]
    score, lost = known["score"], analysis.run["lost_events"]
    console.print()
    whole = score >= 1 and not lost and not known.get("losses")
    if whole and not analysis.run.get("troubles"):
        text = "Nothing was lost."
    elif whole:
        text = "No events dropped before the run stopped."
    elif score >= 1 and not lost:
        text = "No access was lost."
    else:
        text = f"Trace incomplete: coverage {score:.2f}, {plural(lost, 'dropped event')}."
    if known["blind_to"]:
        text += " This collector cannot see: " + ", ".join(map(printable, known["blind_to"])) + "."
    print_wrapped(console, text, "", "" if whole else "yellow")
    notes = known["notes"]
    for note in notes[:_NOTES]:
        print_wrapped(console, "- " + printable(note), "  ")
    if len(notes) > _NOTES:
        console.print(f"  - and {plural(len(notes) - _NOTES, 'more note')}")
