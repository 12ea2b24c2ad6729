"""Predictions: the configurations of a sweep, and the output formats of the results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.errors import UsageError
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.analyzer.predict.model import Strategy
    from tracehint.analyzer.predict.prediction import Configuration


Row = dict[str, Any]
_BAR = 40
MOST_STAGES = 24  # the longest task types are listed in the text


def text(data: Row) -> str:
    """Format the object of `--format json` as a summary."""
    rows = data["configurations"]
    lines = _format_configurations(rows, data["best"], data["front"])
    if len(rows) == 1:
        lines += [*_format_stages(rows[0]), *_format_reason(rows[0])]
    if "validation" in data:
        lines += _format_validation(data["validation"])
    notes = [*data["assumptions"], *(f"{r['name']}: {n}" for r in rows[:8] for n in r["notes"])]
    lines += ["", "Assumed:", *(f"  - {note}" for note in dict.fromkeys(notes))] if notes else []
    return "\n".join([*lines, "", f"Left out of the model: {data['left_out']}."]) + "\n"


def seconds(value: float) -> str:
    """Format seconds with three significant digits, from 100 s on as a whole number."""
    return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of aligned columns: the first left-aligned, the others right-aligned."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return [line(head), *(line(row) for row in rows)]


def _format_configurations(rows: Sequence[Row], best: Row, front: Sequence[str]) -> list[str]:
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


def _format_stages(row: Row) -> list[str]:
    """Return a table of the task types: their time span, and what their tasks wait for."""
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
    more = [f"and {plural(left, 'shorter type')} of tasks: --format json"] if left else []
    return ["", *table(head, cells), *more]


def _format_reason(row: Row) -> list[str]:
    path = row["critical_path"]
    total = sum(path["seconds"].values()) or 1.0
    parts = sorted(path["seconds"].items(), key=lambda item: -item[1])
    steps = ", ".join(
        f"{kind} {value / total:.0%}" for kind, value in parts if value / total > 0.005
    )
    lines = ["", f"Why: the longest chain has {plural(path['length'], 'task')}: {steps}"]
    for task in sorted(path["tasks"], key=lambda t: t["ready"] - t["end"])[:5]:
        most = max(task["spent"], key=lambda kind: task["spent"][kind])
        lines.append(
            f"  {seconds(task['end'] - task['ready']):>8}  {task['name'][:60]}: mostly {most}"
        )
    return lines


def _format_validation(found: Row) -> list[str]:
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
        lines.append(f"Only in one of them: {', '.join(found['only'][:10])}")
    lines.append(_interval_text(found))
    return lines


def _interval_text(found: Row) -> str:
    """Return whether the interval holds, and how a cluster file takes this error into account."""
    inside = "inside" if found["inside"] else "outside"
    text = f"The measured time is {inside} the 90 % interval."
    if not found["predicted_seconds"]:
        return text
    error = abs(found["measured_seconds"] / found["predicted_seconds"] - 1)
    return (
        f"{text} Put the largest error of several such runs into the cluster file; this run: "
        f"[model] error = {min(1.0, max(0.01, error)):.2f}"
    )


def write_parquet(data: Row, output: str | None, *, force: bool) -> None:
    """Write one row per configuration. Raises UsageError without a file to write to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tracehint.app.output import refuse_existing, write_output

    if output is None or output == "-":
        raise UsageError("--format parquet needs a file", "Name it with -o.")
    refuse_existing(Path(output), force=force)
    keys = (
        "name",
        "cluster",
        "placement",
        "nodes",
        "seconds",
        "seconds_low",
        "seconds_high",
        "runs",
        "network_bytes",
        "site_bytes",
        "energy_joules",
        "cost",
    )
    rows = [{key: row[key] for key in keys} for row in data["configurations"]]
    kinds = {"name": pa.string(), "cluster": pa.string(), "placement": pa.string()}
    kinds |= {"nodes": pa.int64(), "runs": pa.int64(), "network_bytes": pa.int64()}
    kinds["site_bytes"] = pa.int64()
    schema = pa.schema([(key, kinds.get(key, pa.float64())) for key in keys])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink)
    write_output([sink.getvalue().to_pybytes()], output)


MAX_VALUES = 1000
Value = float | None  # None: as in the cluster file


def configurations(
    clusters: Sequence[str],
    analysis: Analysis,
    placements: Sequence[str] = (),
    nodes: str | None = None,
    chunk: str | None = None,
    copies: str | None = None,
    split_nodes: str | None = None,
) -> list[Configuration]:
    """Return every combination of clusters, placements and numbers, with distinct names.

    Raises UsageError and InputError.
    """
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.analyzer.predict.prediction import Configuration

    strategies = {name: _strategy(name, analysis) for name in placements or ("default",)}
    axes = {
        "nodes": parse_numbers(nodes, "--nodes", 1, 10_000),
        "chunk": parse_numbers(chunk, "--chunk", 0.001, 1e6, whole=False),
        "copies": parse_numbers(copies, "--copies", 1, 64),
        "split": parse_numbers(split_nodes, "--split-nodes", 1, 9_999),
    }
    found = []
    for given in clusters:
        cluster = read_cluster(given)
        for values in itertools.product(*(list[Value](axis) or [None] for axis in axes.values())):
            point = dict[str, Value](zip(axes, values, strict=True))
            changed = _change_cluster(cluster, **point)
            for name, strategy in strategies.items():
                title = _title(cluster.name, name, changed.count, point)
                found.append(Configuration(title, changed, name, strategy))
    return _distinct(found)


def _change_cluster(
    cluster: Cluster,
    nodes: float | None,
    chunk: float | None,
    copies: float | None,
    split: float | None,
) -> Cluster:
    if nodes is not None:
        cluster = cluster.with_nodes(int(nodes))
    if chunk is not None:
        cluster = cluster.with_store(chunk_mb=chunk * 1e6)
    if copies is not None:
        cluster = cluster.with_store(copies=copies)
    if split is not None:
        if split >= cluster.count:
            raise UsageError(
                f"--split-nodes {split:g} of {cluster.count} nodes leaves none for tasks",
                "Give fewer, or more --nodes.",
            )
        cluster = cluster.split(int(split))
    return cluster


def _title(cluster: str, placement: str, nodes: int, point: dict[str, float | None]) -> str:
    words = [cluster, placement, plural(nodes, "node")]
    named = {"chunk": "chunk {:g} MB", "copies": "{:g} copies", "split": "{:g} servers"}
    words += [text.format(point[key]) for key, text in named.items() if point[key] is not None]
    return ", ".join(words)


def _distinct(found: list[Configuration]) -> list[Configuration]:
    """Make names unique, as they are keys: a cluster given twice gets a number."""
    import dataclasses

    seen: dict[str, int] = {}
    result = []
    for point in found:
        seen[point.name] = count = seen.get(point.name, 0) + 1
        result.append(
            point if count == 1 else dataclasses.replace(point, name=f"{point.name} ({count})")
        )
    return result


def parse_numbers(
    text: str | None, option: str, least: float, most: float, *, whole: bool = True
) -> list[float]:
    """Parse a comma-separated list of numbers; empty for None. Raises UsageError."""
    if text is None:
        return []
    found = []
    for word in text.split(",")[: MAX_VALUES + 1]:
        try:
            number = float(word)
        except ValueError:
            number = float("nan")
        if not least <= number <= most or (whole and number != int(number)):
            kind = "whole numbers" if whole else "numbers"
            raise UsageError(
                f"{option}: {word[:40]!r} is not valid", f"Give {kind} from {least:g} to {most:g}."
            )
        found.append(number)
    if len(found) > MAX_VALUES:
        raise UsageError(f"{option}: too many numbers", f"Give at most {MAX_VALUES}.")
    return list(dict.fromkeys(found))


def _strategy(name: str, analysis: Analysis) -> Strategy:
    from tracehint.analyzer.predict.model import STRATEGIES

    if name in STRATEGIES:
        return STRATEGIES[name]
    kind, _, where = name.partition(":")
    if kind == "hints" and where:
        from tracehint.hintgen.hints.hintfile import load
        from tracehint.hintgen.placed import hinted_strategy

        return hinted_strategy(load(Path(where)), analysis, name)
    raise UsageError(
        f"--placement {name[:80]!r} is unknown", f"Choose {', '.join(STRATEGIES)} or hints:FILE."
    )


NODE_COUNT_FACTORS = (0.5, 1, 2, 4)  # node counts of a sweep, as multiples of the cluster's
PLACEMENTS = ("default", "local")


def sweep(analysis: Analysis, cluster: str) -> dict[str, Any]:
    """Return the object of `predict --format json`; `shown`: the fastest configuration with the
    cluster's node count, and its tasks. Raises InputError; MissingDependencyError if unbuilt."""
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.analyzer.predict.prediction import predict
    from tracehint.analyzer.predict.result import to_json
    from tracehint.analyzer.predict.workload import from_analysis

    own = read_cluster(cluster).count
    counts = sorted({min(10_000, max(1, round(own * k))) for k in NODE_COUNT_FACTORS})
    points = configurations([cluster], analysis, PLACEMENTS, nodes=",".join(map(str, counts)))
    work = from_analysis(analysis)
    found = predict(work, points)
    data = to_json(work, found)
    best = min((p for p in found if p.configuration.cluster.count == own), key=lambda p: p.seconds)
    shown = predict(work, [best.configuration], detail=True)
    return data | {"shown": to_json(work, shown, tasks=True)["configurations"][0]}
