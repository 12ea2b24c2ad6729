"""Effect of each statement of a run's text (runs.py)."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.rows import file_row, task_row
from tests.support.run_model import ROOT, Run, parse_size

# of labels with `saves`, unless they name another one
_PLACEMENT = {
    "pipeline": "local", "broadcast": "replicas=2", "partly_shared": "replicas=2",
    "reduce": "collocation", "distribute": "balanced", "scatter": "scatter", "gather": "regions",
    "stage_in": "local", "stage_out": "local",
}  # fmt: skip  # a table


def _task(run: Run, words: list[str], o: dict[str, str]) -> None:
    name = words[0]
    start, end = float(o.get("start", 0)), float(o.get("end", 10))
    number = len(run.tasks) + 1
    parent = run.tasks[o["by"]]["proc"] if "by" in o else 1
    proc = run.raw.process(
        o.get("cmd", name).split(),
        parent=parent,
        start=start,
        end=end,
        exit_code=int(o.get("exit", 0)),
    )
    row = task_row(
        number, name, type=o.get("type", re.sub(r"[-_.]?\d+.*$", "", name)),
        command=o.get("cmd", name), host=o.get("host", "node1"), site=o.get("site", ""),
        start_s=start, end_s=end, exit_status=int(o.get("exit", 0)),
        attempt=int(o.get("attempt", 1)), engine="engine" in words[1:],
    )  # fmt: skip  # a table
    run.rows["tasks"].append(row)
    run.tasks[name] = {**row, "proc": proc}


def _file(run: Run, words: list[str], o: dict[str, str]) -> None:
    path = words[0]
    raw = run.raw.file(f"{ROOT}/{path}", size=parse_size(words[1]))
    number = len(run.files) + 1
    run.files[path] = {"file": number, "raw": raw, "size": parse_size(words[1])}
    gone = "deleted" in words[2:] or "deleted" in o
    if "deleted" in o:
        run.raw.name(raw, "unlink", f"{ROOT}/{path}", at=float(o["deleted"]))
    more = {"role": o.get("role"), "deleted": gone, "exact_share": float(o.get("exact", 1))}
    run.rows["files"].append(file_row(number, path.encode(), parse_size(words[1]), **more))


def _access(run: Run, words: list[str], o: dict[str, str], op: str) -> None:
    task, file = run.tasks[words[0]], run.files[words[1]]
    start, end = 0, file["size"]
    for word in words[2:]:
        if re.fullmatch(r"[\d.]+[KMG]?-[\d.]+[KMG]?", word):
            start, end = (parse_size(part) for part in word.split("-"))
    at = float(o.get("at", task["start_s"] + 0.5))
    until = float(o.get("until", at))
    length, moved = end - start, parse_size(o["bytes"]) if "bytes" in o else end - start
    run.raw.access(op, task["proc"], file["raw"], start, end, at=at, until=until)
    episode, extent = run.raw.rows["opens"][-1], run.raw.rows["extents"][-1]
    ops = int(o.get("ops", 1))
    episode |= {
        f"{op}_ops": ops,
        f"{op}_bytes": moved,
        "seq_ops": int(o.get("seq", ops - 1)),
        "small_ops": int(o.get("small", 0)),
    }
    extent |= {"ops": ops, "bytes": moved, "how": o.get("how", op)}
    row = {"file": file["file"], "task": task["task"], "bytes": moved, "unique_bytes": length,
           "ranges": [[start, end]], "how": [o.get("how", op)], "first_s": at,
           "last_s": until}  # fmt: skip  # a table
    if op == "write":
        row |= {"owned_bytes": length, "superseded": "superseded" in words[2:]}
        run.rows["producers"].append(row)
    else:
        size = file["size"]
        row |= {"cover": length / size if size else None, "peek": "peek" in words[2:]}
        run.rows["consumers"].append(row)
        if "uncertain" in words[2:]:
            run.facts[("order", task["task"])] = "uncertain"


def _label(run: Run, words: list[str], o: dict[str, str]) -> None:
    file = run.files[words[0]]
    group = None
    if "group" in o:
        known = run.groups.setdefault(
            o["group"],
            {
                "group": len(run.groups) + 1,
                "pattern": words[1],
                "task": None,
                "files": [],
                "bytes": 0,
                "primary": True,
                "evidence": "{}",
            },
        )
        if known not in run.rows["groups"]:
            run.rows["groups"].append(known)
        if "task" in o:
            known["task"] = run.tasks[o["task"]]["task"]
        known["files"].append(file["file"])
        known["bytes"] += file["size"]
        group = known["group"]
    run.rows["patterns"].append(
        {
            "file": file["file"],
            "edge": None,
            "pattern": words[1],
            "primary": True,
            "confidence": float(o.get("confidence", 1)),
            "group": group,
            "evidence": json.dumps({}),
            "placement": o.get("placement", _PLACEMENT.get(words[1], "default"))
            if "saves" in o
            else "default",
            "saves_bytes": parse_size(o.get("saves", "0")),
            "runner_up": "striped",
            "runner_up_saves_bytes": 0,
        }
    )


def _meta(run: Run, words: list[str], o: dict[str, str]) -> None:
    task, folder, op, count = words
    run.raw._add(
        "metadata_ops",
        proc=run.tasks[task]["proc"],
        dir=f"{ROOT}/{folder}".encode(),
        op=op,
        count=int(count),
        errors=int(o.get("errors", 0)),
    )


def _declared(run: Run, name: str) -> dict[str, Any]:
    for row in run.raw.rows["declared_tasks"]:
        if row["task"] == name:
            return row
    task = run.tasks[name]
    run.raw.declared(name, type=task["type"], command=task["command"].encode(), engine="test")
    for row in run.rows["tasks"]:
        if row["name"] == name:
            row["source"] = "both"
    return run.raw.rows["declared_tasks"][-1]


def _declare(run: Run, words: list[str], o: dict[str, str]) -> None:
    _declared(run, words[0])
    size = parse_size(words[3]) if len(words) > 3 else None
    path = o.get("path", words[2]) if len(words) > 2 else o["path"]
    run.raw.declared_file(words[0], words[1], f"{ROOT}/{path}".encode(), size)


def _after(run: Run, words: list[str], _: dict[str, str]) -> None:
    _declared(run, words[1])
    _declared(run, words[0])["parents"].append(words[1])


def _setfattr(run: Run, words: list[str], o: dict[str, str]) -> None:
    at = float(o["at"])
    argv = ["setfattr", "-n", f"user.{words[1]}", "-v", words[2], words[0]]
    run.raw.process(argv, parent=1, start=at, end=at)


def _fact(name: str, kind: type) -> Any:
    def verb(run: Run, words: list[str], _: dict[str, str]) -> None:
        run.facts[name] = words[0].split(",") if kind is list else kind(words[0])

    return verb


VERBS: dict[str, Any] = {
    "task": _task, "file": _file, "label": _label, "meta": _meta, "declare": _declare,
    "after": _after, "setfattr": _setfattr,
    "write": lambda r, w, o: _access(r, w, o, "write"),
    "read": lambda r, w, o: _access(r, w, o, "read"),
    "nodes": _fact("nodes", int), "hosts": _fact("hosts", list), "sites": _fact("sites", list),
    "blind": _fact("blind", list), "lost": _fact("lost", int), "score": _fact("score", float),
    "duration": _fact("duration", float),
}  # fmt: skip  # a table
