"""Spark session of one command, and conversion of Spark's failures to errors with a remedy."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.analyzer.execution.resources import temporary_folder
from tracehint.errors import MissingDependencyError, TracehintError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
_NEEDS_JAVA = (
    "Spark 4 needs Java 17 or later: apt-get install openjdk-17-jre-headless, or set JAVA_HOME."
)
# Settings of every session, new or already active. Results are large binary cells: the cache
# holds one per batch, because Arrow and Java arrays are limited to 2 GiB.
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17),
    "spark.sql.inMemoryColumnarStorage.batchSize": "1",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.caseSensitive": "true",
}
# Errors are raised as exceptions. Spark resets the root logger's level to that of its gateway.
_LOGGING = """rootLogger.level = off
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
rootLogger.appenderRef.console.ref = console
"""


_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # of PySpark


class EngineFailed(Exception):  # noqa: N818 (becomes a TracehintError or a second try)
    """A Spark job failed; the text is the innermost reason that Spark reported."""


@contextmanager
def session(master: str | None) -> Iterator[SparkSession]:
    """Return the active session, or a new one on `master` that stops at the end of the block.

    Raises MissingDependencyError without PySpark or Java.
    """
    try:
        import pandas  # noqa: F401  (PySpark requires it for functions on Arrow data)
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            f"--backend spark: {error.name or 'pyspark'} is not installed",
            "Install it: pip install 'tracehint[spark]'",
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        with _settings(active):
            yield active
        return
    _check_java()
    with temporary_folder("tracehint-spark-") as folder:
        spark = _start(SparkSession.builder, master or LOCAL, folder)
        try:
            with _settings(spark):
                yield spark
        finally:
            spark.stop()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java").exists() if home else shutil.which("java")
    if not found:
        where = f"no bin/java below JAVA_HOME={home}" if home else "no Java on this machine"
        raise MissingDependencyError(f"--backend spark: {where}", _NEEDS_JAVA)


def _start(builder: SparkSession.Builder, master: str, folder: Path) -> SparkSession:
    """Start a session on `master`; Spark's own configuration of the cluster is not changed."""
    builder = builder.master(master).appName("tracehint analyze")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    builder = builder.config("spark.driver.maxResultSize", "0")
    # URLs of bundles use s3://; Hadoop's reader is registered for s3a://
    builder = builder.config("spark.hadoop.fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    for name, value in _s3_settings().items():
        builder = builder.config(f"spark.hadoop.fs.s3a.{name}", value)
    if not {"SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"} & set(os.environ):
        levels = folder / "log4j2.properties"
        levels.write_text(_LOGGING, encoding="utf-8")
        options = f"-Dlog4j2.configurationFile={levels} -Dsun.jnu.encoding=UTF-8"
        builder = builder.config("spark.driver.extraJavaOptions", options)
        if master.startswith("local"):
            builder = builder.config("spark.driver.memory", f"{_memory_mib()}m")
    if master.startswith("local"):
        builder = builder.config("spark.local.dir", str(folder))
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
    had = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = had or sys.executable  # read by Spark at this moment only
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise TracehintError(
            f"--backend spark: no session on {master}: {reason(error)}",
            f"Check the master's URL. {_NEEDS_JAVA}",
        ) from None
    finally:
        if had is None:
            del os.environ["PYSPARK_PYTHON"]


def _s3_settings() -> dict[str, str]:
    """Return S3 endpoint and region from the environment, which Hadoop's reader does not read."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not endpoint:
        return {"endpoint.region": region} if region else {}
    return {
        "endpoint": endpoint,
        "endpoint.region": region or "us-east-1",
        "path.style.access": "true",
    }


def _memory_mib() -> int:
    """Return Java's memory in a local session: a quarter of the machine's, 1 to 16 GiB."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return max(1024, min(whole // 4, 16 << 10))


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@contextmanager
def engine_errors() -> Iterator[None]:
    """Convert Spark's exceptions to EngineFailed."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    # These loggers would print every error with its Java stack.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        raise EngineFailed(reason(error)) from None
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def reason(error: BaseException) -> str:
    """Return the line of an error that states the innermost cause, without Java's stack."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "File ", "..."))]
    causes = [line for line in lines if line.startswith("Caused by:")]
    found = (causes or lines[:1] or [type(error).__name__])[-1]
    if "Python worker" in found:  # its own error is at the end of a Python traceback
        found = lines[-1]
    return found.removeprefix("Caused by:").strip()[:300]
