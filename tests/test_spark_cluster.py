"""Spark in realistic setups: a bundle on a real HDFS, one on S3 read by Hadoop's module, a
standalone master with two workers.

Only in `make test-full`: HDFS's server and the module (half a gigabyte) come from Maven Central
through Spark's own package manager.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, inside
from tests.support.objects import object_store
from tests.support.spark_runs import RUNS

pytestmark = [pytest.mark.full, pytest.mark.slow]
HADOOP = "3.4.1"  # of the client in PySpark 4.0
QUICK = "-XX:TieredStopAtLevel=1"
SECONDS = 600


@contextmanager
def daemon(command: list[str], log: Path, ready: Callable[[], bool]) -> Iterator[None]:
    """Start a server in its own process group, wait until it is ready, and kill it at the end."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        try:
            end = time.monotonic() + SECONDS
            while not ready():
                assert process.poll() is None, log.read_text(errors="replace")[-2000:]
                assert time.monotonic() < end, f"{command[0]} is not ready"
                time.sleep(0.5)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def analyze(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `analyze --format json` in a subprocess."""
    return subprocess.run(
        [*TRACEHINT, "analyze", *words, "--format", "json"],
        cwd=cwd,
        env=os.environ | {"JAVA_TOOL_OPTIONS": QUICK} | env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def json_of(*words: str | Path, cwd: Path, **env: str) -> str:
    """Return the JSON that `analyze` prints."""
    done = analyze(*words, cwd=cwd, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_standalone_cluster_of_two_workers(tmp_path: Path) -> None:
    home = Path(pytest.importorskip("pyspark").__file__).parent
    bundle = RUNS["generated"](tmp_path / "b.trace")
    spark_class, port = str(home / "bin" / "spark-class"), free_port()
    url = f"spark://127.0.0.1:{port}"
    kind, log = "org.apache.spark.deploy", tmp_path / "master.log"
    master = [f"{kind}.master.Master", "--host", "127.0.0.1", "--port", str(port)]

    def says(text: str, count: int = 1) -> Callable[[], bool]:
        return lambda: log.read_text(errors="replace").count(text) >= count

    with ExitStack() as stack:
        command = [spark_class, *master, "--webui-port", "0"]
        stack.enter_context(daemon(command, log, says("I have been elected leader")))
        for n in (1, 2):
            worker = [
                spark_class, f"{kind}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                "-c", "1", "-m", "1g", "-d", str(tmp_path / f"worker{n}"), url,
            ]  # fmt: skip  # a table
            up = says("Registering worker", n)
            stack.enter_context(daemon(worker, tmp_path / f"worker{n}.log", up))
        there = json_of(bundle, "--backend", "spark", "--master", url, cwd=tmp_path)
        assert log.read_text(errors="replace").count("Launching executor") >= 2
    assert there == inside("analyze", bundle, "--format", "json", cwd=tmp_path).stdout


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[str]:
    """The URL of a small real HDFS: one name node and one data node."""
    home = Path(pytest.importorskip("pyspark").__file__).parent
    jars = _server_jars(tmp_path / "ivy")
    port = free_port()
    site = tmp_path / "site.xml"
    classes = ":".join([*map(str, jars), f"{home}/jars/*"])
    command = [
        "java", QUICK, "-Xmx512m", f"-Dtest.build.data={tmp_path}/dfs", "-cp", classes,
        "org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "-nomr", "-format",
        "-nnport", str(port), "-writeConfig", str(site),
    ]  # fmt: skip  # a table
    before = Path.cwd()
    os.chdir(tmp_path)  # it writes below its working directory
    try:
        with daemon(command, tmp_path / "hdfs.log", site.exists):
            yield f"hdfs://localhost:{port}"
    finally:
        os.chdir(before)


def _server_jars(folder: Path) -> list[Path]:
    """Return the server's classes, fetched by Spark's package manager; skip if it cannot."""
    arguments = (
        f"--packages org.apache.hadoop:hadoop-client-minicluster:{HADOOP} --exclude-packages "
        "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime "
        f"--conf spark.jars.ivy={folder} pyspark-shell"
    )
    code = "from pyspark.sql import SparkSession as S; S.builder.master('local[1]').getOrCreate()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": arguments},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    jars = sorted(folder.glob("jars/*.jar"))
    if done.returncode or not jars:
        pytest.skip(f"no HDFS server from Maven: {done.stderr[-300:]}")
    return jars


_PUT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
path = spark._jvm.org.apache.hadoop.fs.Path
system = path(sys.argv[1]).getFileSystem(spark._jsc.hadoopConfiguration())
for name in sys.argv[2:]:
    system.copyFromLocalFile(path("file://" + name), path(sys.argv[1] + "/"))
"""


def test_bundles_on_hdfs(hdfs: str, tmp_path: Path) -> None:
    bundles = [RUNS[n](tmp_path / f"{n}.trace") for n in ("hostile", "broken_footer", "two_hosts")]
    subprocess.run([sys.executable, "-c", _PUT, hdfs, *map(str, bundles)], check=True)
    for bundle in bundles:
        there = json_of(f"{hdfs}/{bundle.name}", "--backend", "spark", cwd=tmp_path)
        here = inside("analyze", bundle, "--format", "json", cwd=tmp_path).stdout
        assert there == here, bundle


def test_bundles_on_s3_by_hadoops_reader(tmp_path: Path) -> None:
    """With Hadoop's module for S3, Spark reads itself; without it, Arrow does (test_spark.py)."""
    pytest.importorskip("pyspark")
    arguments = (
        f"--packages org.apache.hadoop:hadoop-aws:{HADOOP} "
        f"--conf spark.jars.ivy={tmp_path}/ivy pyspark-shell"
    )
    with object_store() as store, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        for name in ("generated", "broken_footer"):
            bundle = RUNS[name](tmp_path / f"{name}.trace")
            url = store.put(bundle, bundle.name)
            there = json_of(url, "--backend", "spark", cwd=tmp_path)
            assert there == inside("analyze", bundle, "--format", "json", cwd=tmp_path).stdout
        done = analyze("s3://none/x.trace", "--backend", "spark", cwd=tmp_path)
        assert done.returncode == 2
        assert "s3://none/x.trace: Spark cannot list it" in done.stderr  # not Arrow
