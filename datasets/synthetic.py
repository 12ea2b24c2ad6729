"""Synthetic bundles of any size with known patterns, made with numpy in seconds.

A run is `units` copies of one small workflow of 11 tasks below one driver:

    gen -> big_U.bin   (8 regions)  -> work x 8   scatter
    gen -> table_U.bin              -> work x 8   broadcast
    work W -> part_U_W.dat          -> merge      reduce
    work x 8 -> grid_U.bin          -> merge      gather
    merge -> sum_U.dat              -> post       pipeline
    cfg_0, cfg_1, cfg_2 (inputs)    -> every work of every unit

That is 70 accesses for 11 tasks. `pieces` divides each access into that many
separate extents, which are disjoint, so their order need not be random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracehint.datasets.synthetic_accesses import (
    CONFIGS,
    FILES_PER_UNIT,
    START_NS,
    STEP_NS,
    TASKS_PER_UNIT,
    WORKERS,
    Accesses,
    Ints,
    accesses,
)
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.tables import TABLES
from tracehint.schemas.writer import BundleWriter

SEGMENT = 1 << 22  # extents per segment


def _names(prefix: str, values: Ints, suffix: str) -> npt.NDArray[Any]:
    return np.char.add(np.char.add(prefix, values.astype("U")), suffix)


def _paths(units: int) -> pa.Array:
    unit = np.arange(units, dtype=np.int64)
    columns = [
        _names("/data/big_", unit, ".bin"),
        _names("/data/table_", unit, ".bin"),
        _names("/data/grid_", unit, ".bin"),
        _names("/data/sum_", unit, ".dat"),
    ]
    columns += [_names("/data/part_", unit, f"_{w}.dat") for w in range(WORKERS)]
    per_unit = np.stack(columns, axis=1).reshape(-1)
    configs = _names("/data/cfg_", np.arange(CONFIGS, dtype=np.int64), "")
    return pa.array(np.concatenate([per_unit, configs])).cast(pa.binary())


def _zero(kind: pa.DataType) -> Any:
    """Return the empty value of a type."""
    if pa.types.is_list(kind):
        return []
    if pa.types.is_boolean(kind):
        return False
    return 0 if pa.types.is_integer(kind) else b""


def _filled(name: str, rows: int, columns: dict[str, Any]) -> pa.Table:
    """Make a table of the schema; missing columns are null, or zero/false/empty if required."""
    arrays = []
    for field in TABLES[name]:
        value = columns.get(field.name)
        if isinstance(value, pa.Array | pa.ChunkedArray):
            arrays.append(value.cast(field.type))
        elif isinstance(value, np.ndarray):
            arrays.append(pa.array(value, type=field.type))
        elif value is not None:
            arrays.append(pa.repeat(pa.scalar(value, type=field.type), rows))
        elif field.nullable:
            arrays.append(pa.nulls(rows, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(_zero(field.type), type=field.type), rows))
    return pa.table(arrays, schema=TABLES[name])


def _processes(units: int) -> pa.Table:
    count = units * TASKS_PER_UNIT
    kinds = np.array(["gen", *["work"] * WORKERS, "merge", "post"])
    kind = np.tile(kinds, units)
    number = np.arange(count, dtype=np.int64)
    unit = number // TASKS_PER_UNIT
    program = pa.array(np.concatenate([["driver.sh"], kind])).cast(pa.binary())
    argument = pa.array(np.concatenate([["-"], number.astype("U")])).cast(pa.binary())
    words = pa.chunked_array([program, argument]).combine_chunks()
    order = np.stack([np.arange(count + 1), count + 1 + np.arange(count + 1)], axis=1).reshape(-1)
    offsets = pa.array(np.arange(0, 2 * count + 3, 2, dtype=np.int32))
    argv = pa.ListArray.from_arrays(offsets, words.take(pa.array(order)))
    parent = pa.array(np.ones(count + 1, dtype=np.int64), mask=np.arange(count + 1) == 0)
    start = np.concatenate([[START_NS], START_NS + unit * 12 * STEP_NS])
    end = np.concatenate([[START_NS + (units + 1) * 12 * STEP_NS], start[1:] + 11 * STEP_NS])
    return _filled(
        "processes",
        count + 1,
        {
            "host": "node1",
            "proc": np.arange(1, count + 2),
            "parent": parent,
            "uid": 1000,
            "pid": (np.arange(1, count + 2) % 4_000_000).astype(np.int32),
            "start_ns": start,
            "end_ns": end,
            "exit_code": 0,
            "exe": program,
            "argv": argv,
            "cwd": b"/data",
        },
    )


def tables(units: int, pieces: int = 1) -> dict[str, pa.Table]:
    """Return the tables of a run with `units * 11` tasks and `units * 70` accesses."""
    rows = accesses(units)
    return {**_but_extents(rows, units), "extents": _extents(rows, 0, len(rows.task), pieces)}


def _but_extents(rows: Accesses, units: int) -> dict[str, pa.Table]:
    files = units * FILES_PER_UNIT + CONFIGS
    paths = _paths(units)
    file_ids = np.arange(1, files + 1, dtype=np.int64)
    ends = np.zeros(files + 1, dtype=np.int64)
    np.maximum.at(ends, rows.file, rows.start + rows.length)
    return {
        "processes": _processes(units),
        "files": _filled(
            "files",
            files,
            {
                "host": "node1",
                "file": file_ids,
                "dev": 1,
                "ino": file_ids + 100,
                "fstype": "ext4",
                "kind": "file",
                "size_bytes": ends[1:],
                "existed": file_ids > files - CONFIGS,
            },
        ),
        "names": _filled(
            "names",
            files,
            {
                "host": "node1",
                "seq": file_ids,
                "t_ns": START_NS,
                "file": file_ids,
                "op": "open",
                "path": paths,
            },
        ),
        "opens": _opens(rows, paths),
    }


def _opens(rows: Accesses, paths: pa.Array) -> pa.Table:
    """Return one row per access."""
    count = len(rows.task)
    return _filled(
        "opens",
        count,
        {
            "host": "node1",
            "open": np.arange(1, count + 1, dtype=np.int64),
            "proc": rows.task,
            "file": rows.file,
            "path": paths.take(pa.array(rows.file - 1)),
            "fd": 3,
            "via": "open",
            "open_ns": rows.t_ns,
            "close_ns": rows.t_ns + 1000,
            "first_ns": rows.t_ns,
            "last_ns": rows.t_ns + 500,
            "read_ops": np.where(rows.write, 0, 1),
            "read_bytes": np.where(rows.write, 0, rows.length),
            "write_ops": np.where(rows.write, 1, 0),
            "write_bytes": np.where(rows.write, rows.length, 0),
        },
    )


def _extents(rows: Accesses, low: int, high: int, pieces: int) -> pa.Table:
    """Return the extents of the accesses from `low` up to but excluding `high`."""
    at = np.repeat(np.arange(low, high, dtype=np.int64), pieces)
    step = rows.length[at] // pieces
    piece = np.tile(np.arange(pieces, dtype=np.int64), high - low)
    lengths = np.where(piece == pieces - 1, rows.length[at] - step * (pieces - 1), step)
    op = pa.array(["read", "write"]).take(pa.array(rows.write[at].astype(np.int8)))
    times = rows.t_ns[at]
    return _filled(
        "extents",
        len(at),
        {
            "host": "node1",
            "open": at + 1,
            "proc": rows.task[at],
            "file": rows.file[at],
            "op": op,
            "how": op,
            "start": rows.start[at] + piece * step,
            "length": lengths,
            "stride": lengths,
            "count": 1,
            "ops": 1,
            "bytes": lengths,
            "first_ns": times,
            "last_ns": times + 500,
            "exact": True,
        },
    )


def write(path: Path, units: int, pieces: int = 1) -> Path:
    """Write the bundle of a run; its extents are made and written in segments."""
    writer = BundleWriter(path, force=True)
    rows = accesses(units)
    for name, table in _but_extents(rows, units).items():
        writer.write_table(name, table)
    count, at_once = len(rows.task), max(1, SEGMENT // pieces)
    # names of equal length, as segments are read in the order of their names
    first = 1000 if count > at_once else 0
    for segment, low in enumerate(range(0, count, at_once), first):
        part = _extents(rows, low, min(low + at_once, count), pieces)
        writer.write_table("extents", part, segment)
    writer.write_manifest(
        Manifest(
            program="synthetic",
            collector="synthetic",
            command=["driver.sh", "-"],
            cwd="/data",
            started_ns=START_NS,
            ended_ns=START_NS + (units + 1) * 12 * STEP_NS,
            exit_status=0,
            complete=True,
            hosts=[RecordingHost(name="node1")],
            data_roots=["/data"],
        )
    )
    return path
