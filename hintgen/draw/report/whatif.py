"""What if: a sweep of predictions as points, and the predicted timeline beside the recorded one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb

MAX_BARS = 4000  # the longest: the others would be thinner than a pixel
MAX_POINTS = 500

_TYPES = "SELECT name, any_value(type ORDER BY task) AS type FROM work GROUP BY name"
_END = "SELECT max(end_s) - min(start_s) AS seconds FROM work"


def what_if(
    prediction: dict[str, Any] | None, con: duckdb.DuckDBPyConnection
) -> dict[str, Any] | None:
    """`points` of the sweep; `timeline` of the configuration `shown` of the prediction: bars
    [lane, start, end, type] and lanes by node. Seconds, bytes. None: nothing was predicted.

    `prediction`: the object of `predict --format json`; `shown`: one of its configurations, with
    tasks.
    """
    if prediction is None:
        return None
    wanted = ("name", "placement", "nodes", "seconds", "seconds_low", "seconds_high",
        "network_bytes", "cost")  # fmt: skip  # a table
    points = [{key: c[key] for key in wanted} for c in prediction["configurations"]]
    shown = prediction["shown"]
    return {
        "points": points[:MAX_POINTS],
        "left_out": max(0, len(points) - MAX_POINTS),
        "best": prediction["best"],
        "recorded_s": query.rows(con, _END)[0]["seconds"],
        "shown": shown["name"],
        "seconds": shown["seconds"],
        "timeline": _timeline(shown["tasks"], con),
        "assumptions": prediction["assumptions"],
    }


def _timeline(tasks: list[dict[str, Any]], con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    from tracehint.hintgen.draw.report.timeline import lanes

    type_of = {row["name"]: row["type"] for row in query.rows(con, _TYPES)}
    longest = sorted(tasks, key=lambda t: t["start"] - t["end"])[:MAX_BARS]
    rows = sorted(longest, key=lambda t: (t["start"], t["name"]))
    types = list(dict.fromkeys(type_of.get(t["name"], "") for t in rows))
    code = {name: i for i, name in enumerate(types)}
    bars: list[list[Any]] = []
    hosts, base = [], 0
    for node in sorted({t["node"] for t in rows}, key=lambda name: (len(name), name)):
        mine = [t for t in rows if t["node"] == node]
        found = lanes([(t["start"], t["end"]) for t in mine])
        bars += [
            [base + lane, round(t["start"], 3), round(t["end"], 3),
                code[type_of.get(t["name"], "")], t["name"]]
            for lane, t in zip(found, mine, strict=True)
        ]  # fmt: skip  # a table
        count = max(found, default=-1) + 1
        hosts.append({"name": node, "first": base, "lanes": count})
        base += count
    return {"bars": bars, "hosts": hosts, "types": types, "left_out": len(tasks) - len(rows)}
