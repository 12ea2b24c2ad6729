"""A plan as text: the decision first, then the predicted result of each strategy."""

from __future__ import annotations

import shlex
from typing import Any

from tracehint.app.prediction import seconds, table
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

Row = dict[str, Any]
GUESSED_SHARE = 0.9  # share of guessed times or sizes, from which on no prediction is made
MINIMUM_GAIN = 0.05  # share of the time: smaller gains are reported as network traffic


def text(data: Row, hint_file: str | None, *, own: bool) -> str:
    """Format the object of `--format json` as text; `hint_file`: the file with the plan."""
    rows = {row["name"]: row for row in data["strategies"]}
    lines = [decision(data, own), "", *_table(data, rows)]
    lines += ["", *_next_commands(data, hint_file)]
    left = [f"  - {row['name']}: {row['reason']}" for row in data["left_out"]]
    lines += ["", "Not tried:", *left] if left else []
    notes = data["assumptions"]
    lines += ["", "Assumed:", *(f"  - {note}" for note in notes)] if notes else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def decision(data: Row, own: bool) -> str:
    """Return the decision and its gain as one sentence; `own`: the cluster is the user's own."""
    rows = {row["name"]: row for row in data["strategies"]}
    default, best = rows["default"], rows[data["chosen"]]
    where = f"{data['cluster']}, {plural(data['nodes'], 'node')}"
    if not own:
        where += "; yours: --cluster FILE"
    if _lacks_data(data):
        return (
            f"No prediction is possible yet ({where}): nearly no task has times or no file a size. "
            "Learn them from a run of the same workflow, of any size: --learned RUN"
        )
    if data["chosen"] == "default":
        makespan = seconds(default["seconds"])
        return f"No hint improves this workflow ({where}): makespan {makespan} with and without."
    text = f"On {'your' if own else 'the built-in'} cluster model ({where}) "
    times = f"{seconds(default['seconds'])} -> {seconds(best['seconds'])}"
    if best["seconds"] > (1 - MINIMUM_GAIN) * default["seconds"]:
        moved = f"{size(default['network_bytes'])} -> {size(best['network_bytes'])}"
        return (
            f"{text}makespan unchanged within model error ({times}); network traffic falls with "
            f'the plan "{best["name"]}": {moved}.'
        )
    text += (
        f"{times} ({seconds(best['seconds_low'])} to {seconds(best['seconds_high'])}) "
        f'with the plan "{best["name"]}"'
    )
    alone = rows.get(data["hints_alone"] or "")
    if best["scheduler"] is None:
        return f"{text}."
    if alone is None:
        return f"{text}; hints alone (default scheduling): no significant gain."
    return f"{text}; hints alone (default scheduling) {seconds(alone['seconds'])} " + (
        f'(the plan "{alone["name"]}").'
    )


def _lacks_data(data: Row) -> bool:
    """Whether the default was chosen because nearly all times or sizes are guessed."""
    return bool(data["chosen"] == "default" and data.get("guessed", 0.0) >= GUESSED_SHARE)


def _table(data: Row, rows: dict[str, Row]) -> list[str]:
    base, sites = rows["default"]["seconds"], rows["default"]["site_bytes"] is not None
    cells = []
    for row in data["strategies"]:
        mark = " *" if row["name"] == data["chosen"] else ""
        cells.append(
            [
                row["name"] + mark,
                seconds(row["seconds"]),
                f"{seconds(row['seconds_low'])} - {seconds(row['seconds_high'])}",
                f"{row['seconds'] / base:.2f}" if base else "-",
                size(row["network_bytes"]),
                *([size(row["site_bytes"])] if sites else []),
            ]
        )
    remarks = [row["refused"] or row["text"] for row in data["strategies"]]
    heads = ["strategy", "time", "90 %", "of default", "network"]
    lines = table([*heads, *(["between sites"] if sites else [])], cells)
    return [f"{line}  {what}" for line, what in zip(lines, ["", *remarks], strict=True)]


def _next_commands(data: Row, hint_file: str | None) -> list[str]:
    """Return the lines with the next command."""
    if _lacks_data(data):
        return ["Next: the same command with --learned RUN"]
    if data["chosen"] == "default":
        return ["Run the workflow unchanged."]
    if hint_file is None:
        return ["Next: the same command with -o hints.json"]
    name = shlex.quote(hint_file)
    if data["tasks"]:
        return [
            "Next: write the parts and the hints into the workflow:",
            f"  tracehint emit {name} --workflow-engine ENGINE WORKFLOW --hosts hosts.toml -o FILE",
        ]
    return [f"Next: tracehint emit {name} --store STORE -o hints.sh"]
