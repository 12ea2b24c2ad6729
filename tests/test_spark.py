"""Both backends give the same analysis, byte for byte, and Spark's failures name a remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TRACEHINT, inside, tracehint
from tests.support.objects import object_store
from tests.support.spark_runs import ALONE, RUNS, generated
from tracehint.analyzer.analyze import analyze_at
from tracehint.analyzer.model import Options
from tracehint.analyzer.output.json import write_json

pytestmark = [pytest.mark.slow, pytest.mark.engine]


# Java compiles as little as possible: these runs end before more compilation would pay.
QUICK_JAVA = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
# Runs also read through a URL: a different listing and reader.
BY_URL = ("damaged", pytest.param("two_hosts", marks=pytest.mark.full))
BY_S3 = ("two_hosts", *(pytest.param(n, marks=pytest.mark.full) for n in ("empty", "damaged")))
# Runs that other tests here also compare, divided into few rows, by a URL or from a store; the
# largest; and one that is hardly larger than the empty one.
ELSEWHERE = ("mixed", "copied", "two_hosts", "generated", "without_accesses", "damaged")
CASES = [pytest.param(n, marks=[pytest.mark.full] * (n in (*ALONE, *ELSEWHERE))) for n in RUNS]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """One local session for all tests of this file: `analyze_at` uses the active one."""
    pytest.importorskip("pyspark")
    from tracehint.analyzer.execution.spark.session import SETTINGS, session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", QUICK_JAVA)
        # many batches, so that sums over batches matter
        patch.setitem(SETTINGS, "spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        with session("local[2]") as found:
            found.conf.set("spark.sql.codegen.wholeStage", "false")
            found.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            yield found


def json_of(where: Path | str, backend: str, options: Options | None = None) -> bytes:
    return b"".join(write_json(analyze_at(str(where), options or Options(), backend)))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", CASES)
def test_both_backends_give_the_same_json(name: str, tmp_path: Path) -> None:
    bundle = RUNS[name](tmp_path / "b.trace")
    assert json_of(bundle, "spark") == json_of(bundle, "local")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", BY_URL)
def test_the_same_json_through_a_url(name: str, tmp_path: Path) -> None:
    bundle = RUNS[name](tmp_path / "b.trace")
    here = json_of(bundle, "local")
    shutil.rmtree(bundle / "extents" / "host=node1" / "deeper", ignore_errors=True)
    for link in bundle.glob("extents/*/*"):
        if link.is_symlink():  # below a URL the file system is trusted
            link.unlink()
    assert json_of(f"file://{bundle}", "spark") == here


def test_runs_have_what_they_are_for(tmp_path: Path) -> None:
    """The runs cover the parts of the flow that backends could compute differently."""
    import json

    found = {n: json.loads(json_of(RUNS[n](tmp_path / n), "local")) for n in RUNS}
    assert any(e["via"] == "engine_copy" for e in found["copied"]["edges"])
    assert any(
        p["pattern"] == "concurrently_shared"
        for f in found["mixed"]["files"]
        for p in f["patterns"]
    )
    notes = {n: " ".join(d["run"]["completeness"]["notes"]) for n, d in found.items()}
    assert "damaged access record" in notes["mixed"]
    assert "clocks" in notes["two_hosts"]
    damages = {"broken_footer": 2, "broken_page": 1, "missing_column": 2, "damaged": 4}
    for name, parts in damages.items():
        assert notes[name].count(".parquet: ") == parts, notes[name]
    assert not found["empty"]["tasks"] and not found["without_accesses"]["edges"]


@pytest.mark.usefixtures("spark")
def test_results_do_not_depend_on_how_rows_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracehint.analyzer.dataflow import partitions as batches
    from tracehint.analyzer.execution.spark import extents as backend

    divide = batches.divide
    runs = [RUNS[name](tmp_path / name) for name in ("mixed", "two_hosts", "copied")]
    for bundle, rows, partitions in zip(runs, (1, 7, 40), (3, 1, 7), strict=True):
        monkeypatch.undo()
        whole = json_of(bundle, "local")
        monkeypatch.setattr(backend, "_PARTITIONS", partitions)
        monkeypatch.setattr(
            "tracehint.analyzer.dataflow.build.divide", lambda *given, n=rows: divide(*given[:4], n)
        )
        assert json_of(bundle, "spark") == whole, bundle
        assert json_of(bundle, "local") == whole, bundle


def test_the_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Only data on stdout, no files left behind, options passed on."""
    pytest.importorskip("pyspark")
    bundle = RUNS["copied"](tmp_path / "b.trace")
    work, temporary = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.sql.codegen.wholeStage false\nspark.sql.codegen.factoryMode NO_CODEGEN\n"
    )
    words = ["analyze", bundle, "--format", "json", "--nodes", "3", "--no-ranges"]
    here = inside(*words, cwd=work)
    there = subprocess.run(
        [*TRACEHINT, *words, "--backend", "spark", "--master", "local[1]"],
        cwd=work, capture_output=True, text=True, check=False,
        env={
            **os.environ, "TMPDIR": str(temporary), "SPARK_CONF_DIR": str(tmp_path),
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )  # fmt: skip  # a table
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout
    assert "Traceback" not in there.stderr and " at org." not in there.stderr
    assert not list(work.iterdir())
    assert not [p for p in temporary.iterdir() if "tracehint" in p.name or "spark" in p.name]


@pytest.mark.usefixtures("spark")
def test_no_bundle_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for where in (
        tmp_path / "folder",
        tmp_path / "nothing",
        f"file://{tmp_path}/folder",
        f"file://{tmp_path}/nothing",
    ):
        done = inside("analyze", where, "--backend", "spark", cwd=tmp_path)
        assert done.returncode == 2
        assert "no such bundle" in done.stderr or "not a trace bundle" in done.stderr, done.stderr
    done = inside("analyze", "nosuch://host/b.trace", "--backend", "spark", cwd=tmp_path)
    assert done.returncode == 2
    assert "nosuch://host/b.trace: Spark cannot list it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", BY_S3)
def test_the_same_json_from_s3_without_a_jar(name: str, tmp_path: Path) -> None:
    """Without Hadoop's module for S3, Arrow reads in Spark's workers."""
    with object_store() as store:
        bundle = RUNS[name](tmp_path / "b.trace")
        for link in bundle.glob("extents/*/*"):
            if link.is_symlink():
                link.unlink()
        url = store.put(bundle, f"{name}.trace")
        assert json_of(url, "spark") == json_of(bundle, "local")


@pytest.mark.usefixtures("spark")
def test_errors_of_s3_are_those_of_the_backend_local(tmp_path: Path) -> None:
    with object_store():
        for url in ("s3://runs/nothing.trace", "s3://nosuchbucket/x.trace"):
            here, there = (
                inside("analyze", url, "--backend", e, cwd=tmp_path) for e in ("local", "spark")
            )
            assert there.returncode == 2
            assert there.stderr.split("(Request")[0] == here.stderr.split("(Request")[0]
            assert url in there.stderr


@pytest.mark.usefixtures("spark")
def test_a_full_disk_names_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracehint.analyzer.execution.spark import extents as backend
    from tracehint.analyzer.execution.spark.session import EngineFailed

    def fails(*_: object) -> None:
        raise EngineFailed("java.io.IOException: No space left on device")

    monkeypatch.setattr(backend, "_run", fails)
    done = inside("analyze", "b.trace", "--backend", "spark", cwd=tmp_path)
    assert done.returncode == 2
    assert "b.trace: Spark failed" in done.stderr and "TMPDIR" in done.stderr


def test_a_master_needs_spark(tmp_path: Path) -> None:
    done = inside("analyze", "b.trace", "--master", "spark://h:7077", cwd=tmp_path)
    assert done.returncode == 2
    assert "--backend spark" in done.stderr


def test_without_java_the_remedy_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    bundle = generated(tmp_path / "b.trace")
    for env in ({"JAVA_HOME": str(tmp_path)}, {"JAVA_HOME": "", "PATH": str(tmp_path)}):
        done = tracehint("analyze", bundle, "--backend", "spark", cwd=tmp_path, env=env)
        assert done.returncode == 2
        assert "Java" in done.stderr and "openjdk-17" in done.stderr
        assert "Traceback" not in done.stderr


def test_without_pyspark_the_remedy_is_named(tmp_path: Path) -> None:
    bundle = generated(tmp_path / "b.trace")
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from tracehint.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", bundle, "--backend", "spark"],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip  # a table
    assert done.returncode == 2
    assert "pip install 'tracehint[spark]'" in done.stderr


def test_the_backend_local_loads_nothing_of_spark(tmp_path: Path) -> None:
    bundle = generated(tmp_path / "b.trace")
    code = (
        "import sys; from tracehint.cli import main; main(sys.argv[1:]);"
        "print(sorted({'pyspark', 'pandas', 'py4j'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", bundle, "-o", "out.txt"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip  # a table
    assert done.stdout.splitlines()[-1] == "[]"


def test_notes_of_partitions_are_those_of_the_whole() -> None:
    from tracehint.analyzer.dataflow.build import merge_notes

    said = [
        "2 strided",
        "a file has 3 accesses",
        "5 reads (up to 1.250 s): x",
        "3 strided",
        "a file has 3 accesses",
        "1 reads (up to 0.500 s): x",
        "1 [read|reads] more",
        "40 {} odd",
    ]
    assert merge_notes(said) == [
        "5 strided",
        "a file has 3 accesses",
        "6 reads (up to 1.250 s): x",
        "1 read more",
        "40 {} odd",
    ]


@pytest.mark.usefixtures("spark")
@pytest.mark.full  # follows from the same JSON
@pytest.mark.parametrize("name", ["two_hosts", "mixed"])
def test_hints_and_lint_are_the_same(name: str, tmp_path: Path) -> None:
    from tracehint.hintgen.hints.hintfile import to_json
    from tracehint.hintgen.inputs import load_at
    from tracehint.hintgen.learn.rules import learn
    from tracehint.hintgen.lint import run_rules
    from tracehint.hintgen.lint.config import choose
    from tracehint.hintgen.lint.context import Context

    bundle = str(RUNS[name](tmp_path / "b.trace"))
    found = []
    for backend in ("local", "spark"):
        run = load_at(bundle, Options(), backend)
        findings = run_rules(Context(run.analysis, run.bundle), choose((), ()))
        found.append((to_json(learn([run.analysis])), findings))
    assert found[0] == found[1]
    assert found[0][1], "a run without findings compares nothing"
