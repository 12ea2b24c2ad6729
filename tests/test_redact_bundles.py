"""Secrets of commands stay out of bundles, however the command gets there."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.cli import tracehint
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.redact.tables import TEXTS
from tracehint.schemas.spool.redact import redact_spool
from tracehint.schemas.store import read_bundle, table_from_rows
from tracehint.schemas.tables import TABLES
from tracehint.schemas.writer import BundleWriter

pytestmark = pytest.mark.slow

S = "hunter2Zq"
COMMAND = f"mysql -u etl -p{S} calib < in.sql"
# Text columns without commands: names of files and hosts, kinds, and messages of the recorder.
OTHER = {
    "processes": {"host", "exe", "cwd"}, "files": {"host", "fstype", "kind"},
    "names": {"host", "op", "path", "new_path"}, "opens": {"host", "path", "via"},
    "extents": {"host", "op", "how"}, "metadata_ops": {"host", "dir", "op"},
    "marks": {"host", "kind", "source"}, "losses": {"host", "kind", "detail"},
    "attributes": {"host", "name", "value"}, "declared_tasks": {"host", "workdir", "engine"},
    "declared_io": {"host", "path", "direction"},
    "settings": {"host", "path", "rule", "pattern", "hint", "key", "value", "state", "why"},
}  # fmt: skip  # a table

MAKEFLOW = f"out: in.sql\n\tmysql -u etl -p{S} calib < in.sql > out\n"
JOBLOG = (
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
    f"1\t:\t1700000000.1\t1.0\t0\t0\t0\t0\tcurl -u etl:{S} https://h/x -o x\n"
    f"2\t:\t1700000000.2\t1.0\t0\t0\t0\t0\tsh -c 'TOKEN={S} ./fetch y'\n"
)
WFFORMAT = json.dumps(
    {
        "name": "w", "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [{"name": f"load --password {S}", "id": f"load --password {S}",
                           "parents": [], "children": [], "inputFiles": [], "outputFiles": []}],
                "files": [],
            },
            "execution": {
                "makespanInSeconds": 1, "executedAt": "2026-01-01T00:00:00Z",
                "tasks": [{"id": f"load --password {S}", "runtimeInSeconds": 1,
                           "command": {"program": "mysql", "arguments": [f"-p{S}", "calib"]}}],
            },
        },
    }
)  # fmt: skip  # a table
STRACE = f'7 1700000000.000001 execve("/bin/sh", ["sh", "-c", "mysql -p{S} x"], ["A=b"]) = 0\n'


def everything(bundle: Path) -> bytes:
    """Return the full content of a bundle as its readers decode it."""
    run = read_bundle(bundle)
    texts = [table.to_pylist().__repr__() for table in run.tables.values()]
    return "\n".join((*texts, (bundle / "manifest.json").read_text())).encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [("Makeflow", MAKEFLOW), ("jobs.log", JOBLOG), ("w.json", WFFORMAT), ("trace.strace", STRACE)],
)
def test_imports_are_redacted(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    done = tracehint("import", name, "-o", "b.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = everything(tmp_path / "b.trace")
    assert S.encode() not in said
    assert b"<redacted>" in said
    assert read_bundle(tmp_path / "b.trace").manifest.redacted_args > 0
    told = tracehint("analyze", "b.trace", "--format", "json", cwd=tmp_path)
    assert S not in told.stdout


def test_a_joined_workflow_is_redacted_where_it_is_only_read(tmp_path: Path) -> None:
    (tmp_path / "trace.strace").write_text(STRACE)
    (tmp_path / "Makeflow").write_text(MAKEFLOW)
    tracehint("import", "trace.strace", "-o", "b.trace", cwd=tmp_path)
    done = tracehint("lint", "b.trace", "Makeflow", "--format", "json", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert S not in done.stdout + done.stderr
    tracehint("import", "trace.strace", "-o", "c.trace", "--workflow", "Makeflow", cwd=tmp_path)
    assert S.encode() not in everything(tmp_path / "c.trace")


def test_every_text_of_every_table_is_decided_about() -> None:
    """A new column must be listed in one of the two tables."""

    def is_text(kind: pa.DataType) -> bool:
        if pa.types.is_list(kind):
            return is_text(kind.value_type)
        return pa.types.is_struct(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)

    for name, schema in TABLES.items():
        texts = {field.name for field in schema if is_text(field.type)}
        assert texts == OTHER[name] | set(TEXTS.get(name, ())), name


def rows_with_secrets() -> dict[str, pa.Table]:
    task = {"host": "h", "attempt": 1, "engine": "x", "command": COMMAND.encode(), "type": "t"}
    ids = [f"load --password {S}", f"load --password {S}2"]
    return {
        "declared_tasks": table_from_rows(
            "declared_tasks",
            [{**task, "task": ids[0], "name": COMMAND, "parents": []},
             {**task, "task": ids[1], "name": COMMAND, "parents": [ids[0]]}],
        ),
        "declared_io": table_from_rows(
            "declared_io",
            [{"host": "h", "task": i, "path": b"/x", "direction": "in"} for i in ids],
        ),
        "marks": table_from_rows(
            "marks",
            [{"host": "h", "t_ns": 1, "kind": "task_begin", "name": COMMAND, "source": "s"}],
        ),
        "processes": table_from_rows(
            "processes",
            [{"host": "h", "proc": 1, "pid": 1, "uid": 0, "start_ns": 1,
              "argv": [b"sh", b"-c", COMMAND.encode()],
              "env": [{"name": "TRACEHINT_TASK", "value": COMMAND.encode()}]}],
        ),
    }  # fmt: skip  # a table


def test_each_table_is_redacted_and_tasks_stay_apart(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b.trace")
    for name, table in rows_with_secrets().items():
        writer.write_table(name, table)
    manifest = Manifest(command=["sh", "-c", COMMAND])
    writer.write_manifest(manifest)
    assert manifest.command == ["sh", "-c", "mysql -u etl -p<redacted> calib < in.sql"]
    assert S.encode() not in everything(tmp_path / "b.trace")
    run = read_bundle(tmp_path / "b.trace")
    tasks, io = run.tables["declared_tasks"].to_pylist(), run.tables["declared_io"].to_pylist()
    assert len({task["task"] for task in tasks}) == 2
    assert tasks[1]["parents"] == [tasks[0]["task"]]
    assert [row["task"] for row in io] == [task["task"] for task in tasks]
    assert run.manifest.redacted_args == 13


def test_kept_arguments_stay_through_merging(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "kept.trace", keep_args=True)
    writer.write_table("processes", rows_with_secrets()["processes"])
    writer.write_manifest(Manifest(command=["x", "--password", S], complete=True))
    done = tracehint("merge", "kept.trace", "-o", "m.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    merged = read_bundle(tmp_path / "m.trace")
    assert merged.manifest.kept_args
    assert merged.manifest.command[-1] == S
    assert merged.tables["processes"]["argv"].to_pylist()[0][-1].decode() == COMMAND


def test_markers_in_a_spool_are_redacted(tmp_path: Path) -> None:
    argv, env = b"true\0", f"TRACEHINT_TASK={COMMAND}\0SLURM_JOB_ID=7\0".encode()
    (tmp_path / "heap.bin").write_bytes(argv + env)
    record = struct.pack("<IIQIIQ", 1, 0, 0, len(argv), len(env), len(argv))
    (tmp_path / "execs.bin").write_bytes(record)
    assert redact_spool(tmp_path) == 1
    heap = (tmp_path / "heap.bin").read_bytes()
    _, _, argv_at, argv_len, env_len, env_at = struct.unpack(
        "<IIQIIQ", (tmp_path / "execs.bin").read_bytes()
    )
    assert S.encode() not in heap
    assert heap[argv_at : argv_at + argv_len] == argv
    assert heap[env_at : env_at + env_len] == env.replace(S.encode(), b"<redacted>")


def test_rows_without_secrets_are_the_same_object() -> None:
    from tracehint.schemas.redact.tables import Redactor

    table = table_from_rows(
        "marks", [{"host": "h", "t_ns": 1, "kind": "task_begin", "name": "align", "source": "s"}]
    )
    assert Redactor().table("marks", table) is table
