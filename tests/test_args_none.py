"""`--args none`: no argument of any process reaches the bundle, whatever records."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.cli import TRACEHINT, tracehint
from tests.support.patience import PATIENCE_S
from tests.test_bpftrace import WITH_TRACEFS
from tests.test_redact_bundles import everything, rows_with_secrets
from tracehint.collectors.base import RecordRequest
from tracehint.errors import UsageError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.redact.tables import Redactor
from tracehint.schemas.store import read_bundle, table_from_rows
from tracehint.schemas.writer import BundleWriter

MARK = b"zq7PlainWord"  # no secret to any rule
SCRIPT = f"sort {MARK.decode()}.in --tag {MARK.decode()} -o x; /bin/echo {MARK.decode()} > y"


def write(path: Path, **how: bool) -> Manifest:
    writer = BundleWriter(path, **how)
    for name, table in rows_with_secrets().items():
        writer.write_table(name, table)
    manifest = Manifest(command=["sh", "-c", SCRIPT], complete=True)
    writer.write_manifest(manifest)
    return manifest


def test_of_commands_the_program_alone_is_written(tmp_path: Path) -> None:
    assert write(tmp_path / "b.trace", no_args=True).command == ["sh"]
    run = read_bundle(tmp_path / "b.trace")
    assert run.manifest.no_args
    assert run.tables["processes"]["argv"].to_pylist() == [[b"sh"]]
    tasks, io = run.tables["declared_tasks"].to_pylist(), run.tables["declared_io"].to_pylist()
    assert [task["command"] for task in tasks] == [b"mysql", b"mysql"]
    assert all(" " not in task["name"] and task["name"].startswith("mysql") for task in tasks)
    assert len({task["task"] for task in tasks}) == 2
    assert tasks[1]["parents"] == [tasks[0]["task"]]
    assert [row["task"] for row in io] == [task["task"] for task in tasks]
    assert b"calib" not in everything(tmp_path / "b.trace")


def test_it_holds_through_merging_and_appending(tmp_path: Path) -> None:
    write(tmp_path / "b.trace", no_args=True)
    done = tracehint("merge", "b.trace", "-o", "m.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_bundle(tmp_path / "m.trace").manifest.no_args
    assert b"calib" not in everything(tmp_path / "m.trace")
    BundleWriter.append_to(tmp_path / "b.trace").write_table(
        "processes", rows_with_secrets()["processes"], segment=1
    )
    assert b"calib" not in everything(tmp_path / "b.trace")


def test_commands_without_an_ordinary_first_word_leave_nothing() -> None:
    rows = [
        {"host": "h", "task": str(i), "name": "n", "type": "t u", "command": text, "parents": [],
         "attempt": 1, "engine": "x"}
        for i, text in enumerate([b"PW=a b", b"'/x y/z' a", b" bwa mem", b"", b"$(a) b"])
    ]  # fmt: skip  # a table
    table = Redactor(no_args=True).table("declared_tasks", table_from_rows("declared_tasks", rows))
    assert table["command"].to_pylist() == [b"PW", b"", b"bwa", b"", b""]
    assert table["type"].to_pylist() == ["t"] * 5
    empty = pa.chunked_array([], pa.list_(pa.binary()))
    assert len(Redactor(no_args=True)._column("argv", empty) or empty) == 0


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["ebpf", "preload", "strace", "bpftrace"])
def test_no_collector_stores_an_argument(tmp_path: Path, collector: str) -> None:
    (tmp_path / f"{MARK.decode()}.in").write_text("a\n")
    script = SCRIPT.replace(f"{MARK.decode()}.in", "*.in").replace("--tag", "-S 1M -T /tmp #")
    wanted = ["record", "--args", "none", "--collector", collector, "-o", "r.trace"]
    words = [*wanted, "--", "sh", "-c", script, MARK.decode()]
    if collector == "bpftrace" and not os.geteuid():
        words = [*WITH_TRACEFS, *TRACEHINT, *words]
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    else:
        done = tracehint(*words, cwd=tmp_path)
    if done.returncode == 125:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert "--args none" in done.stderr
    run = read_bundle(tmp_path / "r.trace")
    argvs = run.tables["processes"]["argv"].to_pylist()
    assert [b"sh"] in argvs
    assert all(len(argv) <= 1 for argv in argvs)
    assert run.manifest.command == ["sh"]
    texts = [repr(run.tables[name].to_pylist()) for name in ("processes", "marks", "losses")]
    texts.append((tmp_path / "r.trace" / "manifest.json").read_text())
    assert MARK.decode() not in "\n".join(texts)
    assert not (tmp_path / "r.trace" / "raw").exists()
    told = tracehint("analyze", "r.trace", "--format", "json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr


def test_it_does_not_go_with_keeping_arguments(tmp_path: Path) -> None:
    for options in (["--args", "none", "--keep-args"], ["--keep-args", "--args", "none"]):
        done = tracehint("record", *options, "--", "touch", "x", cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert "--args none" in done.stderr
        assert not (tmp_path / "x").exists()
    from tracehint.collectors.ebpf.collector import keeps_spool

    later = RecordRequest(("true",), tmp_path, no_args=True, options={"convert": "later"})
    with pytest.raises(UsageError, match="--args none"):
        keeps_spool(later)
