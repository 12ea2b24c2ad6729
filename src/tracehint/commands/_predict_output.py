"""The forms of a prediction: text for people, and a sweep as a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracehint.errors import UsageError

Row = dict[str, Any]
_BAR = 40
MOST_STAGES = 24  # types of tasks in the text, the longest


def text(data: Row) -> str:
    """The summary of the object of `--format json`."""
    rows = data["configurations"]
    lines = _sweep(rows, data["best"], data["front"])
    if len(rows) == 1:
        lines += [*_stages(rows[0]), *_why(rows[0])]
    if "validation" in data:
        lines += _validation(data["validation"])
    notes = [*data["assumptions"], *(f"{r['name']}: {n}" for r in rows[:8] for n in r["notes"])]
    lines += ["", "Assumed:", *(f"  - {note}" for note in dict.fromkeys(notes))] if notes else []
    return "\n".join([*lines, "", f"Left out of the model: {data['left_out']}."]) + "\n"


def size(count: float) -> str:
    """Bytes with three digits: 1.23 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if count < 100 else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def seconds(value: float) -> str:
    """Seconds with three digits."""
    return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side; the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return [line(head), *(line(row) for row in rows)]


def _sweep(rows: Sequence[Row], best: Row, front: Sequence[str]) -> list[str]:
    sites = any(row["site_bytes"] is not None for row in rows)
    between = ["between sites"] if sites else []
    head = ["configuration", "time", "90 %", "network", *between, "busiest link", "energy", "cost"]
    cells = []
    for row in rows:
        link = row["busiest_link"]
        energy, cost = row["energy_joules"], row["cost"]
        cells.append(
            [
                row["name"] + (" *" if row["name"] in best.values() else ""),
                seconds(row["seconds"]),
                f"{seconds(row['seconds_low'])} - {seconds(row['seconds_high'])}",
                size(row["network_bytes"]),
                *([size(row["site_bytes"] or 0)] if sites else []),
                f"{link['host']} {link['direction']} {link['share']:.0%}" if link else "-",
                f"{energy / 3600:,.3g} Wh" if energy is not None else "-",
                f"{cost:,.4g}" if cost is not None else "-",
            ]
        )
    lines = table(head, cells)
    if len(rows) > 1:
        lines += ["", f"Best by time: {best['seconds']}"]
        lines += [f"Best by cost: {best['cost']}"] if best["cost"] else []
        lines += [f"Between the two: {'; '.join(front)}"] if len(front) > 1 else []
    return lines


def _stages(row: Row) -> list[str]:
    """Each type of task: when, and what its tasks wait for."""
    end = row["seconds"] or 1.0
    kinds = ("compute", "network", "disk", "metadata", "requests", "queue")
    cells = []
    long = sorted(row["stages"], key=lambda stage: -stage["seconds"])[:MOST_STAGES]
    shown = [stage for stage in row["stages"] if stage in long]
    for stage in shown:
        left = round(stage["start"] / end * _BAR)
        width = max(1, round(stage["seconds"] / end * _BAR))
        bar = (" " * min(left, _BAR - 1) + "=" * width)[:_BAR]
        spent = [seconds(stage["spent"][kind]) for kind in kinds]
        cells.append(
            [
                stage["type"][:32],
                str(stage["tasks"]),
                seconds(stage["seconds"]),
                *spent,
                bar.ljust(_BAR),
            ]
        )
    head = ["stage", "tasks", "from first to last", *kinds, "when".ljust(_BAR)]
    left = len(row["stages"]) - len(shown)
    more = [f"and {left} shorter types of tasks: --format json"] if left else []
    return ["", *table(head, cells), *more]


def _why(row: Row) -> list[str]:
    path = row["critical_path"]
    total = sum(path["seconds"].values()) or 1.0
    parts = sorted(path["seconds"].items(), key=lambda item: -item[1])
    said = ", ".join(
        f"{kind} {value / total:.0%}" for kind, value in parts if value / total > 0.005
    )
    lines = ["", f"Why: the longest chain has {path['length']} tasks: {said}"]
    for task in sorted(path["tasks"], key=lambda t: t["ready"] - t["end"])[:5]:
        most = max(task["spent"], key=lambda kind: task["spent"][kind])
        lines.append(
            f"  {seconds(task['end'] - task['ready']):>8}  {task['name'][:60]}: mostly {most}"
        )
    return lines


def _validation(found: Row) -> list[str]:
    def error(value: float | None) -> str:
        return "-" if value is None else f"{value:+.1%}"

    cells = [
        [
            row["type"][:40],
            seconds(row["measured_seconds"]),
            seconds(row["predicted_seconds"]),
            error(row["error"]),
        ]
        for row in found["types"]
    ]
    whole = [found["measured_seconds"], found["predicted_seconds"]]
    cells.append(["whole run", *map(seconds, whole), error(found["error"])])
    lines = ["", f"Against the measured run ({found['name']}):"]
    lines += table(["type", "measured", "predicted", "error"], cells)
    if found["only"]:
        lines.append(f"Only on one side: {', '.join(found['only'][:10])}")
    lines.append(_kept(found))
    return lines


def _kept(found: Row) -> str:
    """How the next intervals take this error into account."""
    inside = "inside" if found["inside"] else "outside"
    said = f"The measured time is {inside} the 90 % interval."
    if not found["predicted_seconds"]:
        return said
    error = abs(found["measured_seconds"] / found["predicted_seconds"] - 1)
    return (
        f"{said} The largest error of several such runs belongs into the cluster file, of this one "
        f"it would be: [model] error = {min(1.0, max(0.01, error)):.2f}"
    )


def write_parquet(data: Row, output: str | None, *, force: bool) -> None:
    """One row per configuration. Raises UsageError without a file to write to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tracehint.commands._output import put, refuse_existing

    if output is None or output == "-":
        raise UsageError("--format parquet needs a file", "Name it with -o.")
    refuse_existing(Path(output), force=force)
    keys = (
        "name", "cluster", "placement", "nodes", "seconds", "seconds_low", "seconds_high", "runs",
        "network_bytes", "site_bytes", "energy_joules", "cost",
    )  # fmt: skip  # a table
    rows = [{key: row[key] for key in keys} for row in data["configurations"]]
    kinds = {"name": pa.string(), "cluster": pa.string(), "placement": pa.string()}
    kinds |= {"nodes": pa.int64(), "runs": pa.int64(), "network_bytes": pa.int64()}
    kinds["site_bytes"] = pa.int64()
    schema = pa.schema([(key, kinds.get(key, pa.float64())) for key in keys])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink)
    put([sink.getvalue().to_pybytes()], output)
