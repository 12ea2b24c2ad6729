"""Writing and reading the contract JSON of an analysis (declared in document.py).

The writer converts number columns to text columns and joins them, without a Python object per row.
It works in blocks of rows, so its memory use does not grow with the output. Names that are not
UTF-8 are written with U+FFFD, and their exact bytes as base64 in a second field; numbers are never
NaN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tracehint.analyzer import catalogue
from tracehint.errors import InputError

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.analyzer.output.document import AnalysisDocument
    from tracehint.analyzer.output.sections import Section


_NUMBERED = re.compile(r"[a-z]([0-9]{1,18})")
PLACEMENT = re.compile(r"[A-Za-z0-9=_.-]{0,60}")
VIA, ORDER = ("data", "engine_copy", "declared"), ("certain", "uncertain")


class _Ids:
    """String ids as integers: `t12` becomes 12 if all ids have this form, else ids are numbered."""

    def __init__(self, ids: Iterable[str]) -> None:
        names = list(ids)
        found = [_NUMBERED.fullmatch(name) for name in names]
        keep = all(found) and len({m[1] for m in found if m}) == len(names)
        self._numbers = {
            name: int(m[1]) if keep and m else k + 1
            for k, (name, m) in enumerate(zip(names, found, strict=True))
        }

    def __getitem__(self, name: str) -> int:
        if name not in self._numbers:
            raise InputError(f"analysis JSON: unknown id {name!r}", "Write it again with analyze.")
        return self._numbers[name]


def from_json(data: dict[str, Any]) -> Analysis:
    """Read an analysis from contract JSON; missing optional fields get neutral values.

    Raises InputError if it is not contract JSON or has another version.
    """
    from tracehint.analyzer.model import ANALYSIS_SCHEMA

    if not isinstance(data, dict) or data.get("schema") != ANALYSIS_SCHEMA:
        raise InputError(
            f"not an analysis of version {ANALYSIS_SCHEMA!r}",
            "Give the output of: tracehint analyze B --format json",
        )
    try:
        return _build_analysis(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"analysis JSON: missing or wrong field: {error}", "Write it again with analyze."
        ) from None


def _build_analysis(data: dict[str, Any]) -> Analysis:
    import pyarrow as pa

    from tracehint.analyzer.model import ANALYSIS_TABLES, Analysis

    tasks = _Ids(t["id"] for t in data["tasks"])
    files = _Ids(f["id"] for f in data["files"])
    groups = _Ids(g["id"] for g in data["groups"])
    lineages: dict[str, int] = {}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ANALYSIS_TABLES}
    programs = _Ids(dict.fromkeys(t["group"] for t in data["tasks"] if t.get("group")))
    rows["tasks"] = [
        {**t, "task": tasks[t["id"]], "group": programs[t["group"]] if t.get("group") else None}
        for t in data["tasks"]
    ]
    for f in data["files"]:
        file = files[f["id"]]
        rows["files"].append(_file(f, file, lineages))
        rows["producers"] += [_convert_user(p, file, tasks) for p in f["producers"]]
        rows["consumers"] += [_convert_user(c, file, tasks) for c in f["consumers"]]
        rows["patterns"] += [_pattern(p, file, None, groups) for p in f["patterns"]]
    for edge, e in enumerate(data["edges"], 1):
        file = files[e["file"]]
        _one_of(e["via"], VIA)
        _one_of(e["order"], ORDER)
        if e["bytes"] is None:
            raise ValueError("edges: bytes is null")
        ends = {"producer": tasks[e["producer"]], "consumer": tasks[e["consumer"]]}
        rows["edges"].append({**e, **ends, "edge": edge, "file": file})
        rows["patterns"] += [_pattern(p, file, edge, groups) for p in e["patterns"]]
    rows["groups"] = [_group(g, groups, tasks, files) for g in data["groups"]]
    tables = {
        name: pa.Table.from_pylist(rows[name], schema=schema)
        for name, schema in ANALYSIS_TABLES.items()
    }
    return Analysis(run=data["run"], options=options_of(data["run"]), **tables)


def options_of(run: dict[str, Any]) -> Options:
    """Return the options recorded in an analysis. Raises TypeError, AttributeError."""
    from tracehint.analyzer.model import Options

    known = Options.__dataclass_fields__
    return Options(**{k: v for k, v in run.get("parameters", {}).items() if k in known})


def _group(g: dict[str, Any], groups: _Ids, tasks: _Ids, files: _Ids) -> dict[str, Any]:
    _one_of(g["pattern"], catalogue.GROUPED)
    return {
        **g,
        "group": groups[g["id"]],
        "task": tasks[g["task"]],
        "files": [files[f] for f in g["files"]],
        "evidence": json.dumps(g["evidence"]),
    }


def _file(f: dict[str, Any], file: int, lineages: dict[str, int]) -> dict[str, Any]:
    from tracehint.analyzer.text import name_of

    codes = f.get("other_path_bytes") or [None] * len(f["other_paths"])
    return {
        **f,
        "file": file,
        "lineage": f.get("lineage", lineages.setdefault(f["path"], file)),
        "path": name_of(f["path"], f["path_bytes"]),
        "other_paths": [name_of(p, c) for p, c in zip(f["other_paths"], codes, strict=True)],
        "deleted": f.get("deleted", False),
        "exact_share": f.get("exact_share", 1.0),
        "concurrent": any(p["pattern"] == "concurrently_shared" for p in f["patterns"]),
    }


def _convert_user(row: dict[str, Any], file: int, tasks: _Ids) -> dict[str, Any]:
    owned = 0 if row.get("superseded") else row["unique_bytes"]
    return {"owned_bytes": owned, **row, "file": file, "task": tasks[row["task"]]}


def _one_of(value: str, allowed: Collection[str]) -> None:
    """Raise ValueError for a value that the contract does not allow."""
    if value not in allowed:
        raise ValueError(f"{value!r} is not one of {', '.join(allowed)}")


def _pattern(p: dict[str, Any], file: int, edge: int | None, groups: _Ids) -> dict[str, Any]:
    _one_of(p["pattern"], catalogue.NAMES)
    for name in ("placement", "runner_up"):
        if not PLACEMENT.fullmatch(p["choice"][name]):
            raise ValueError(f"{p['choice'][name]!r} is not a placement")
    return {
        "saves_wait_bytes": 0,
        **p,
        **p["choice"],
        "file": file,
        "edge": edge,
        "group": None if p["group"] is None else groups[p["group"]],
        "evidence": json.dumps(p["evidence"]),
    }


def write_json(analysis: Analysis, threads: int = 1) -> Iterator[bytes]:
    """Yield the contract JSON in pieces, one line per task, file, edge and group."""
    from tracehint.analyzer.model import ANALYSIS_SCHEMA
    from tracehint.analyzer.output import sections

    head = json.dumps({"schema": ANALYSIS_SCHEMA, "run": analysis.run}, allow_nan=False)
    yield head[:-1].encode()
    for name, section in (
        ("tasks", sections.tasks),
        ("files", sections.files),
        ("edges", sections.edges),
        ("groups", sections.groups),
    ):
        yield f',\n"{name}":['.encode()
        yield from _pieces(section(analysis), threads)
        yield b"]"
    yield b"}\n"


def _pieces(section: Section, threads: int) -> Iterator[bytes]:
    """Yield the blocks in order; with several threads, blocks are formatted ahead."""
    if threads < 2 or len(section.bounds) < 2:
        yield from (section.text(low, high) for low, high in section.bounds)
        return
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[bytes]] = deque()
        for low, high in section.bounds:
            ahead.append(pool.submit(section.text, low, high))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def to_json(analysis: Analysis) -> AnalysisDocument:
    """Return the contract JSON as Python objects."""
    data: AnalysisDocument = json.loads(b"".join(write_json(analysis)))
    return data
