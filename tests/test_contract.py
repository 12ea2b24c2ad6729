"""The contract JSON: worked examples, schema, round trip, hostile names, the command."""

from __future__ import annotations

import base64
import importlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import tracehint
from tests.support.hints import json_schema
from tests.support.hostile import HOSTILE_NAMES
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import ANALYSIS_TABLES, Options
from tracehint.analyzer.output.json import from_json, to_json, write_json
from tracehint.errors import InputError
from tracehint.hintgen.summary.console import console_for
from tracehint.hintgen.summary.summary import print_summary

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent / "examples"
SCHEMA = json_schema("analysis")
NAMES = ("pipeline", "scatter_gather", "append_retry")


def normal(data: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with ids derived from content, lists in a fixed order, additions removed."""
    data = json.loads(json.dumps(data))
    for added in ("parameters", "makers"):
        data["run"].pop(added, None)
    tasks = sorted(data["tasks"], key=lambda t: (t["start_s"], t["command"]))
    files = sorted(data["files"], key=lambda f: (f["path"], f["version"]))
    ids = {t["id"]: f"task {k}" for k, t in enumerate(tasks)}
    ids |= {f["id"]: f"{f['path']} v{f['version']}" for f in files}
    for row in [*tasks, *files]:
        row["id"] = ids[row["id"]]
    for file in files:
        file.pop("lineage", None)
        file.pop("other_path_bytes", None)
        for side in ("producers", "consumers"):
            for row in file[side]:
                row["task"] = ids[row["task"]]
            file[side].sort(key=lambda row: row["task"])
    for edge in data["edges"]:
        edge.update({k: ids[edge[k]] for k in ("producer", "file", "consumer")})
    data["edges"].sort(key=lambda e: (e["file"], e["producer"], e["consumer"]))
    return {**data, "tasks": tasks, "files": files}


def analyzed(name: str, folder: Path, **options: Any) -> dict[str, Any]:
    run = importlib.import_module(f"tests.examples.{name}").build()
    return to_json(analyze(run.bundle(folder), Options(**options)))


@pytest.mark.parametrize("name", NAMES)
def test_worked_example(name: str, tmp_path: Path) -> None:
    expected = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.validate(expected, SCHEMA)
    found = analyzed(name, tmp_path)
    jsonschema.validate(found, SCHEMA)
    assert normal(found) == normal(expected)


@pytest.mark.parametrize("name", NAMES)
def test_reading_what_was_written_gives_the_same(name: str, tmp_path: Path) -> None:
    data = analyzed(name, tmp_path)
    assert to_json(from_json(data)) == data


def hostile_run() -> RunBuilder:
    """Return a run that writes and reads every hostile name, all in one directory."""
    run = RunBuilder()
    shell = run.process(["sh", "x\x1b[31m\n\udcff.sh"])
    one = run.process(["one", "\udcfe\n$(touch x)"], parent=shell, start=1, end=2)
    two = run.process(["two", "[red]\u202e\x07"], parent=shell, start=3, end=4)
    for name in HOSTILE_NAMES:
        file = run.file(b"/data/" + name, existed=False, size=100_000)
        run.write(one, file, 0, 100_000, at=1.5, path="/data/x")
        run.read(two, file, 0, 100_000, at=3.5, path="/data/x")
    return run


def test_hostile_names_survive_the_json(tmp_path: Path) -> None:
    data = to_json(analyze(hostile_run().bundle(tmp_path), Options(data_roots=("/data",))))
    jsonschema.validate(data, SCHEMA)
    data = json.loads(json.dumps(data))
    found = set()
    for file in data["files"]:
        file["path"].encode("utf-8")  # raises if there are surrogates
        code = file["path_bytes"]
        found.add(base64.b64decode(code) if code else file["path"].encode())
        if code is not None:
            with pytest.raises(UnicodeDecodeError):
                base64.b64decode(code).decode("utf-8")
    assert found == set(HOSTILE_NAMES)
    assert to_json(from_json(data)) == data


@pytest.mark.parametrize("width", [40, 80, 120])
def test_hostile_names_never_reach_the_terminal(tmp_path: Path, width: int) -> None:
    analysis = analyze(hostile_run().bundle(tmp_path), Options(data_roots=("/data",)))
    analysis.run["completeness"]["notes"] = ["a\x1b[2Jb\nc [bold]d[/bold]"]
    text = io.StringIO()
    console = console_for(text)
    console.width = width
    print_summary(analysis, console)
    for line in text.getvalue().splitlines():
        assert line.isprintable(), line
        assert len(line) <= width, line
    assert "a\\x1b[2Jb\\x0ac [bold]d[/bold]" in text.getvalue().replace("\n", "").replace("  ", "")


def test_no_number_is_nan(tmp_path: Path) -> None:
    analysis = analyze(hostile_run().bundle(tmp_path))
    nan = float("nan")
    cover = pa.array([nan] * analysis.consumers.num_rows)
    where = analysis.consumers.schema.get_field_index("cover")
    analysis.consumers = analysis.consumers.set_column(where, "cover", cover)
    data = b"".join(write_json(analysis))
    assert json.loads(data, parse_constant=lambda name: pytest.fail(name))


def test_an_empty_bundle_is_an_empty_analysis(tmp_path: Path) -> None:
    data = to_json(analyze(RunBuilder().bundle(tmp_path)))
    jsonschema.validate(data, SCHEMA)
    assert (data["tasks"], data["files"], data["edges"], data["groups"]) == ([], [], [], [])


def test_losses_are_told_and_lower_score_and_confidence(tmp_path: Path) -> None:
    run = importlib.import_module("tests.examples.pipeline").build()
    run.loss("lifecycle_records", 4, proc=2)
    run.loss("path_cut", 7)
    run.manifest.complete = False
    run.manifest.notes = ["a note \udcff"]
    data = to_json(analyze(run.bundle(tmp_path)))
    jsonschema.validate(data, SCHEMA)
    known = data["run"]["completeness"]
    assert data["run"]["lost_events"] == 4
    assert 0.5 < known["score"] < 0.8
    assert any("4 process or file events" in note for note in known["notes"])
    assert any("7 paths" in note for note in known["notes"])
    assert "a note \ufffd" in known["notes"]
    (middle,) = [f for f in data["files"] if f["path"] == "mid.dat"]
    assert middle["patterns"][0]["evidence"]["factors"]["kept"] < 1
    assert middle["patterns"][0]["confidence"] < 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d: d.update(schema="other"), "not an analysis"),
        (lambda d: d.pop("files"), "files"),
        (lambda d: d["edges"][0].update(producer="t99"), "t99"),
        (lambda d: d["edges"][0].update(via='x","y'), "not one of"),
        (lambda d: d["edges"][0].update(bytes=None), "bytes is null"),
        (lambda d: d["files"][0].update(size_bytes=1 << 63), "wrong field"),
        (lambda d: d["files"][1]["patterns"][0].update(pattern="magic"), "magic"),
        (lambda d: d["files"][1]["patterns"][0]["choice"].update(placement='"'), "placement"),
    ],
)
def test_wrong_json_is_refused_with_a_reason(change: Any, word: str) -> None:
    data = json.loads((EXAMPLES / "pipeline.json").read_text(encoding="utf-8"))
    change(data)
    with pytest.raises(InputError, match=word):
        from_json(data)


# -- the command ----------------------------------------------------------------------------


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    run = importlib.import_module("tests.examples.scatter_gather").build()
    return run.save(tmp_path / "run.trace")


def command(*args: str | Path, code: int = 0) -> str:
    """Return stdout of `tracehint analyze` (stderr if `code` is not 0); fail on another code."""
    done = tracehint("analyze", *args)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_json_of_the_command_is_the_contract(bundle: Path, tmp_path: Path) -> None:
    data = json.loads(command(bundle, "--format", "json"))
    jsonschema.validate(data, SCHEMA)
    assert normal(data) == normal(json.loads((EXAMPLES / "scatter_gather.json").read_text()))
    target = tmp_path / "a.json"
    assert command(bundle, "--format", "json", "-o", target) == ""
    assert json.loads(target.read_text()) == data


def test_options_of_the_command(bundle: Path) -> None:
    counted = ("--no-ranges", "--nodes", "2", "--data-root", "/nowhere")
    thresholds = ("--default-placement", "local", "--scatter-max-m", "1.5")
    data = json.loads(command(bundle, "--format", "json", *counted, *thresholds))
    jsonschema.validate(data, SCHEMA)
    assert data["run"]["nodes"] == 2
    assert data["run"]["data_roots"] == ["/nowhere"]
    parameters = data["run"]["parameters"]
    assert (parameters["default_placement"], parameters["scatter_max_m"]) == ("local", 1.5)
    assert not any("ranges" in row for f in data["files"] for row in f["consumers"])


def test_parquet_is_one_file_per_table(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command(bundle, "--format", "parquet", "-o", folder)
    assert {p.name for p in folder.iterdir()} == {
        "run.json",
        *(f"{name}.parquet" for name in ANALYSIS_TABLES),
    }
    assert pq.read_table(folder / "edges.parquet").num_rows == 8
    assert json.loads((folder / "run.json").read_text())["nodes"] == 4
    assert "-o" in command(bundle, "--format", "parquet", code=2)


def test_text_is_a_summary(bundle: Path) -> None:
    text = command(bundle)
    for word in ("split", "scatter", "gather", "big.dat", "Nothing was lost"):
        assert word in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_no_bundle_is_a_message(tmp_path: Path) -> None:
    assert "not a trace bundle" in command(tmp_path, code=2)


def test_json_needs_no_pandas_networkx_or_rich(bundle: Path, tmp_path: Path) -> None:
    """Importing them takes longer than analyzing a small run."""
    program = (
        "import sys; from tracehint.cli import main;"
        f" code = main(['analyze', {str(bundle)!r}, '--format', 'json', '-o',"
        f" {str(tmp_path / 'x.json')!r}]);"
        " print(sorted({'pandas', 'networkx', 'rich', 'jsonschema'} & set(sys.modules)));"
        " sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
