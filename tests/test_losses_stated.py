"""All losses are stated, counted in one way, and reported before anything else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import TRACEHINT, inside, record_words
from tests.support.ebpf import require_ebpf
from tests.support.patience import until
from tracehint.collectors.registry import check
from tracehint.schemas.losses import KINDS, score, words
from tracehint.schemas.manifest import manifest_to_json
from tracehint.schemas.store import read_bundle
from tracehint.schemas.tables import LOSS_KINDS
from tracehint.schemas.writer import BundleWriter, write_bundle

pytestmark = pytest.mark.slow

NOTHING = "Nothing was lost."


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Save a complete run of two tasks, as recorders write it."""
    run = RunBuilder()
    make, use = run.process(["make"]), run.process(["use"], start=3)
    file = run.file("/data/f", existed=False)
    run.write(make, file, 0, 100, at=1)
    run.read(use, file, 0, 100, at=4)
    run.manifest.exit_status = 0
    run.manifest.complete = True
    built = read_bundle(run.save(tmp_path / "built.trace"))
    write_bundle(BundleWriter(tmp_path / "run.trace"), built.tables, built.manifest)
    return tmp_path / "run.trace"


def changed(bundle: Path, **fields: Any) -> None:
    manifest = read_bundle(bundle).manifest
    for name, value in fields.items():
        setattr(manifest, name, value)
    (bundle / "manifest.json").write_text(manifest_to_json(manifest))


def run_of(bundle: Path) -> dict[str, Any]:
    done = inside("analyze", str(bundle), "--format", "json", cwd=bundle.parent)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["run"])


def text_of(bundle: Path) -> str:
    return inside("analyze", str(bundle), cwd=bundle.parent).stdout


def test_every_kind_of_loss_has_a_meaning() -> None:
    assert set(KINDS) == set(LOSS_KINDS)
    assert words({"argv_cut": 3}) == ["3 command lines too long and cut"]
    assert words({"unknown_calls": 1})[0].startswith("1 call of")
    assert words({"": 1, "new": 2}) == ["1 loss of kind ", "2 losses of kind new"]


@pytest.mark.parametrize(
    ("losses", "seen", "whole", "wanted"),
    [
        ({}, 10, True, 1.0),
        ({"argv_cut": 5}, 10, True, 1.0),
        ({"extent_records": 10}, 10, True, 0.5),
        ({"killed_recorder": 1}, 10, False, 0.9),
        ({"killed_recorder": 1, "damaged_segment": 4}, 10, False, 0.9),
        ({"of another version": 1}, 10, True, 0.9),
        ({"killed_recorder": 1}, 0, False, 0.0),
        ({}, 0, True, 1.0),
    ],
)
def test_one_definition(losses: dict[str, int], seen: int, whole: bool, wanted: float) -> None:
    assert score(losses, seen, whole=whole) == pytest.approx(wanted)


def test_a_whole_run_lost_nothing(bundle: Path) -> None:
    assert NOTHING in text_of(bundle)
    found = run_of(bundle)
    assert (found["completeness"]["score"], found["completeness"]["losses"]) == (1, {})
    assert (found["troubles"], found["exit_status"], found["complete"]) == ([], 0, True)


@pytest.mark.parametrize(
    ("table", "limit"),
    [
        *((table, []) for table in ("processes", "opens", "extents", "files", "names")),
        ("extents", ["--memory-limit", "1K"]),
    ],
)
def test_a_table_that_is_gone(bundle: Path, table: str, limit: list[str]) -> None:
    shutil.rmtree(bundle / table)
    done = inside("analyze", str(bundle), *limit, cwd=bundle.parent)
    assert NOTHING not in done.stdout
    assert f"{table}: 2 rows missing" in done.stdout or f"{table}: 1 row missing" in done.stdout
    assert run_of(bundle)["completeness"]["score"] < 1


def test_an_older_bundle_without_its_opens(bundle: Path) -> None:
    changed(bundle, rows={})
    assert NOTHING in text_of(bundle)
    shutil.rmtree(bundle / "opens")
    assert NOTHING not in text_of(bundle)


@pytest.mark.parametrize("kind", ["extent_records", "unknown_calls", "killed_recorder", "path_cut"])
def test_the_sentence_is_printed_only_when_it_is_true(bundle: Path, kind: str) -> None:
    from tracehint.schemas.store import losses_table

    manifest = read_bundle(bundle).manifest
    table = losses_table(manifest, [(kind, 12, "x")])
    BundleWriter.append_to(bundle).write_table("losses", table)
    text = text_of(bundle)
    assert NOTHING not in text
    assert words({kind: 12})[0] in " ".join(text.split())
    assert run_of(bundle)["completeness"]["losses"] == {kind: 12}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"exit_status": 3}, "The run failed with exit status 3"),
        ({"exit_status": 130}, "The run was ended by SIGINT"),
        ({"complete": False}, "The recorder did not reach its end"),
    ],
)
def test_trouble_is_said_first(bundle: Path, fields: dict[str, Any], said: str) -> None:
    changed(bundle, **fields)
    assert text_of(bundle).startswith(said)
    assert inside("lint", str(bundle), cwd=bundle.parent).stdout.startswith(said)
    if "complete" in fields:
        assert said in inside("report", str(bundle), "-o", "-", cwd=bundle.parent).stdout
    assert NOTHING not in text_of(bundle)


def test_bundles_that_merge_cannot_read_are_losses(bundle: Path) -> None:
    (bundle.parent / "bad.trace").mkdir()
    done = inside("merge", "run.trace", "bad.trace", "-o", "all.trace", cwd=bundle.parent)
    assert done.returncode == 0
    assert NOTHING not in text_of(bundle.parent / "all.trace")
    assert run_of(bundle.parent / "all.trace")["completeness"]["losses"] == {"unreadable_log": 1}


def recorder(folder: Path, collector: str, *command: str) -> subprocess.Popen[str]:
    if not check(collector).usable:
        pytest.skip(check(collector).reason)
    words = [*TRACEHINT, *record_words(*command, collector=collector, to="b")]
    return subprocess.Popen(
        words, cwd=folder, text=True, start_new_session=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip  # a table


READERS = (
    ("analyze", "b"),
    ("lint", "b"),
    ("graph", "b"),
    ("hints", "b", "-o", "h.json"),
    ("report", "b", "-o", "r.html"),
    ("export", "b", "--to", "wfformat", "-o", "e.json"),
    ("anonymize", "b", "-o", "anonymous.trace"),
    ("merge", "b", "-o", "merged.trace"),
)


@pytest.mark.ebpf
@pytest.mark.parametrize(
    # light: the log has fewer system calls
    "collector",
    ["ebpf", "preload", "strace", pytest.param("strace-light", marks=pytest.mark.full)],
)
def test_every_command_reads_what_a_killed_recorder_left(tmp_path: Path, collector: str) -> None:
    """The recorder is killed midway; the command continues to its end."""
    script = "seq 99 > f; cat f > g; echo on; read line; cat g > h; echo off; read line"
    with recorder(tmp_path, collector, "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "on\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        for word in ("off\n", ""):
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == word
    log = tmp_path / "b" / ("raw" if "strace" in collector else "spool")
    assert log.is_dir()
    until(lambda: read_bundle(tmp_path / "b").tables["opens"].num_rows, "its records are there")
    # the preload library leaves the same kind of spool as eBPF
    for reader in READERS if collector != "preload" else (READERS[0], READERS[-1]):
        done = inside(*reader, cwd=tmp_path)
        assert done.returncode in (0, 1), (reader, done.stderr)
        assert NOTHING not in done.stdout
    assert text_of(tmp_path / "b").startswith("The recorder ")
    assert run_of(tmp_path / "merged.trace")["completeness"]["score"] <= 1
    assert not (tmp_path / "b" / "processes").exists()  # reading does not modify the bundle


@pytest.mark.parametrize("log", ["strace.log", "bpftrace.log"])
def test_an_empty_log_is_an_empty_recording(tmp_path: Path, log: str) -> None:
    run = RunBuilder()
    run.manifest.complete = False
    (run.save(tmp_path / "b") / "raw").mkdir()
    (tmp_path / "b" / "raw" / log).touch()
    assert "The recorder of b was killed or is still at work" in text_of(tmp_path / "b")
    assert run_of(tmp_path / "b")["completeness"]["losses"] == {"killed_recorder": 1}


@pytest.mark.ebpf
@pytest.mark.parametrize("collector", ["ebpf", "strace"])
def test_an_interrupted_run_says_so(tmp_path: Path, collector: str) -> None:
    # sed answers once it runs: a shell that is about to exec a program survives the signal
    with recorder(tmp_path, collector, "sh", "-c", "seq 9 > f; exec sed -u s/x/on/") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("x\n")
        process.stdin.flush()
        assert process.stdout.readline() == "on\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait() == -signal.SIGINT
    assert text_of(tmp_path / "b").startswith("The run was ended by SIGINT")


@pytest.mark.ebpf
@pytest.mark.parametrize("collector", ["ebpf", "strace"])
def test_a_file_size_limit_costs_records_and_is_stated(tmp_path: Path, collector: str) -> None:
    if collector == "ebpf":
        require_ebpf()
    record = f"{sys.executable} -m tracehint record --quiet --collector {collector} -o b"
    script = "for i in $(seq 60); do seq 9 > f$i; cat f$i > /dev/null; done; exit 7"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 8; {record} -- sh -c '{script}'"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip  # a table
    assert done.returncode == 7, done.stderr
    found = run_of(tmp_path / "b")
    assert found["completeness"]["score"] < 0.9
    assert found["completeness"]["losses"].keys() & {"spool_write", "killed_recorder"}
    assert text_of(tmp_path / "b").startswith("The ")


@pytest.mark.ebpf
def test_what_record_announces_is_what_the_analysis_says(tmp_path: Path) -> None:
    from tracehint.collectors.base import RecordRequest
    from tracehint.collectors.ebpf import EbpfCollector

    require_ebpf()
    command = ("sh", "-c", f"sh -c 'true {'x' * 40_000}'; cat /dev/null")
    result = EbpfCollector().record(RecordRequest(command, tmp_path / "b", quiet=True))
    assert "argv_cut" in result.losses
    assert run_of(tmp_path / "b")["completeness"]["losses"] == dict(result.losses)
    text = text_of(tmp_path / "b")
    assert NOTHING not in text
    assert "No access was lost." in text


@pytest.mark.ebpf
def test_half_written_tables_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk became full during the conversion: the spool still exists."""
    from tracehint.collectors.base import RecordRequest
    from tracehint.collectors.ebpf import EbpfCollector

    require_ebpf()
    monkeypatch.chdir(tmp_path)
    request = RecordRequest(("sh", "-c", "seq 9 > f; cat f"), tmp_path / "b", quiet=True)
    later = RecordRequest(request.command, request.output, options={"convert": "later"})
    EbpfCollector().record(later)
    whole = read_bundle(tmp_path / "b")
    half = {"processes": whole.tables["processes"].slice(0, 1)}
    BundleWriter.append_to(tmp_path / "b").write_table("processes", half["processes"])
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    (tmp_path / "b" / "manifest.json").write_text(
        json.dumps({**manifest, "ended_ns": None, "complete": False})
    )
    found = read_bundle(tmp_path / "b")
    assert found.tables["processes"].num_rows == whole.tables["processes"].num_rows
    assert found.tables["opens"].equals(whole.tables["opens"])
    assert text_of(tmp_path / "b").startswith("The recorder was stopped before it wrote the tables")
