"""Every command that is given a wrong kind of file names that kind and what to type."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.cli import tracehint
from tests.support.small_run import small_run

pytestmark = pytest.mark.slow

RUNS = ("analyze", "hints", "lint", "graph", "report")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one file or directory of each kind."""
    folder = tmp_path_factory.mktemp("wrong")
    small_run(folder)
    (folder / "make.sh").write_text("echo hello\n")
    (folder / "empty").mkdir()
    (folder / "other.json").write_text('{"a": 1}\n')
    (folder / "notes.txt").write_text("hello\n")
    results = folder / "run.tracehint"
    results.mkdir()
    done = tracehint("hints", "run.trace", "-o", "run.tracehint/hints.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = tracehint("analyze", "run.trace", "--format", "json", cwd=folder)
    (folder / "analysis.json").write_text(done.stdout)
    return folder


@pytest.mark.parametrize(
    ("given", "what", "remedy"),
    [
        ("make.sh", "a program, not a recording", "tracehint profile -- sh make.sh"),
        ("other.json", "a JSON file, not a trace bundle", "tracehint import other.json"),
        ("notes.txt", "a file, not a trace bundle", "tracehint import notes.txt"),
        ("empty", "not a trace bundle", "tracehint import empty"),
        ("run.tracehint", "not the recording", "Give the recording: run.trace"),
        ("absent.trace", "no such bundle", "tracehint profile -- COMMAND"),
    ],
)
def test_what_is_no_run(given: str, what: str, remedy: str, place: Path) -> None:
    for command in RUNS:
        done = tracehint(command, given, cwd=place)
        assert done.returncode == 2, command
        assert done.stderr.startswith(f"tracehint: {given}: "), command
        assert what in done.stderr and remedy in done.stderr, command
        assert "Errno" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [c for c in RUNS if c != "hints"])
def test_hints_are_no_run(command: str, place: Path) -> None:
    done = tracehint(command, "run.tracehint/hints.json", cwd=place)
    assert done.returncode == 2
    assert "a hint file, not a trace bundle" in done.stderr


def test_an_analysis_is_no_recording(place: Path) -> None:
    done = tracehint("analyze", "analysis.json", cwd=place)
    assert done.returncode == 2
    assert "the output of `tracehint analyze`, not a trace bundle" in done.stderr


@pytest.mark.parametrize(
    ("given", "what", "remedy"),
    [
        ("run.trace", "a trace bundle, not a hint file", "tracehint hints run.trace -o hints.json"),
        ("run.tracehint", "a directory, not a hint file", "run.tracehint/hints.json"),
        ("analysis.json", "not a hint file", "tracehint hints analysis.json -o hints.json"),
        ("make.sh", "a program, not a hint file", "tracehint profile -- sh make.sh"),
        ("other.json", "a JSON file, not a hint file", "tracehint hints NAME.trace -o FILE"),
        ("hints.json", "no such file", "There is run.tracehint/hints.json."),
        ("empty", "a directory, not a hint file", "tracehint hints NAME.trace -o FILE"),
    ],
)
def test_what_is_no_hint_file(given: str, what: str, remedy: str, place: Path) -> None:
    for command in (
        ("emit", given, "--store", "xattr"),
        ("verify", given, ".", "--store", "xattr"),
    ):
        done = tracehint(*command, cwd=place)
        assert done.returncode == 2, command
        assert f"{given}: {what}" in done.stderr or what in done.stderr
        assert remedy in done.stderr, command


def test_hints_that_are_not_there_are_looked_for(place: Path) -> None:
    done = tracehint("hints", "hints.json", "--explain", "x", cwd=place)
    assert "There is run.tracehint/hints.json." in done.stderr


def test_what_tracehint_wrote_is_not_imported(place: Path) -> None:
    """A hint file has "rules", as a Makeflow file in JSON has."""
    for name in ("run.tracehint/hints.json", "analysis.json"):
        done = tracehint("import", name, "-o", "no.trace", cwd=place)
        assert done.returncode == 2
        assert "written by tracehint itself" in done.stderr
    done = tracehint("import", "run.trace", "-o", "no.trace", cwd=place)
    assert "is already a trace bundle" in done.stderr
    assert "tracehint analyze run.trace" in done.stderr
    assert not (place / "no.trace").exists()


def test_merging_what_is_no_bundle_says_what_to_type(place: Path) -> None:
    done = tracehint("merge", "make.sh", "-o", "no.trace", cwd=place)
    assert done.returncode == 2
    assert "tracehint profile -- sh make.sh" in done.stderr


def test_numbers_beyond_all_sums_are_named(tmp_path: Path) -> None:
    small_run(tmp_path)
    run = tmp_path / "run.trace"
    [opens] = (run / "opens").rglob("*.parquet")
    table = pq.read_table(opens)
    at = table.schema.get_field_index("read_ops")
    most = pa.array([2**63 - 1] * table.num_rows)
    pq.write_table(table.set_column(at, table.schema.field(at), most), opens)
    done = tracehint("lint", run, cwd=tmp_path)
    assert done.returncode == 2
    assert "numbers of the input cannot be added: Out of Range" in done.stderr
    assert "It is damaged" in done.stderr


def test_a_table_without_a_value_is_refused(place: Path, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    done = tracehint("analyze", "run.trace", "--format", "parquet", "-o", tables, cwd=place)
    assert done.returncode == 0, done.stderr
    tasks = pq.read_table(tables / "tasks.parquet")
    at = tasks.schema.get_field_index("type")
    none = pa.nulls(tasks.num_rows, tasks.schema.field(at).type)
    pq.write_table(tasks.set_column(at, tasks.schema.field(at), none), tables / "tasks.parquet")
    done = tracehint("lint", tables, cwd=place)
    assert done.returncode == 2
    assert "tasks: column type has rows without a value" in done.stderr


def test_a_result_never_replaces_its_input(place: Path) -> None:
    before = (place / "run.tracehint/hints.json").read_bytes()
    hints = "run.tracehint/hints.json"
    for command in (("emit", hints, "--store", "xattr"), ("hints", hints)):
        done = tracehint(*command, "-o", hints, "--force", cwd=place)
        assert done.returncode == 2
        assert "is also the input" in done.stderr
    assert (place / "run.tracehint/hints.json").read_bytes() == before


def test_one_foreign_file_among_darshan_logs_is_named_and_the_rest_is_whole(tmp_path: Path) -> None:
    logs = sorted((Path(__file__).parent.parent / "datasets").rglob("*.darshan"))
    if not logs:
        pytest.skip("no Darshan log in datasets/")
    (tmp_path / "logs").mkdir()
    shutil.copy(logs[0], tmp_path / "logs")
    (tmp_path / "logs" / "foreign.darshan").write_text("no log\n")
    done = tracehint("import", "logs", "-o", "d.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "foreign.darshan: not a Darshan log" in done.stderr
    told = tracehint("analyze", "d.trace", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "did not reach its end" not in told.stdout + told.stderr
    assert "could not be read" in told.stdout + told.stderr
