"""Bundles at s3:// URLs on a local server give the same JSON as the directory; errors name a
remedy."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import inside
from tests.support.objects import BUCKET, KEYS, Store, object_store
from tests.support.spark_runs import ALONE, RUNS
from tracehint.analyzer.analyze import analyze_at
from tracehint.analyzer.execution import bundle_files, local
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.model import Options
from tracehint.analyzer.output.json import write_json
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.slow

# same kinds of objects as in other runs, with other rows
LIKE_OTHERS = ("mixed", "copied", "without_accesses")
# a bundle at a URL must be complete
WHOLE = [
    pytest.param(name, marks=[pytest.mark.full] * (name in (*ALONE, *LIKE_OTHERS)))
    for name in RUNS
    if name != "spool_left"
]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with object_store() as found:
        yield found


def json_of(where: Path | str, resources: Resources | None = None) -> bytes:
    return b"".join(write_json(analyze_at(str(where), Options(), resources=resources)))


def without_links(bundle: Path) -> Path:
    """Remove links, which are not followed in a directory and cannot exist in an object store."""
    for link in bundle.glob("extents/*/*"):
        if link.is_symlink():
            link.unlink()
    return bundle


@pytest.mark.parametrize("name", WHOLE)
def test_the_same_json_from_s3(name: str, store: Store, tmp_path: Path) -> None:
    bundle = without_links(RUNS[name](tmp_path / "b.trace"))
    here = json_of(bundle)
    url = store.put(bundle, f"{name}/a b%20ü.trace")
    assert json_of(url) == here
    assert json_of(url.replace("s3:", "s3a:") + "/") == here
    assert json_of(f"file://{bundle}") == here


@pytest.mark.parametrize("name", ["generated", "mixed", "broken_page", "broken_footer"])
def test_accesses_at_a_url_are_spilled_too(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS[name](tmp_path / "b.trace")
    here = json_of(bundle)
    url = store.put(bundle, f"{name}/spilled.trace")
    monkeypatch.setattr(local, "BATCH", 7)
    assert json_of(url, Resources(threads=2, memory=0, folder=tmp_path)) == here


def test_the_command_reads_s3(store: Store, tmp_path: Path) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    here = inside("analyze", bundle, "--format", "json", cwd=tmp_path)
    there = inside("analyze", store.put(bundle, "x.trace"), "--format", "json", cwd=tmp_path)
    assert there.returncode == 0 and there.stdout == here.stdout


def test_merge_reads_all_bundles_below_a_url(store: Store, tmp_path: Path) -> None:
    """The rows equal those from directories, and an empty URL is an error."""
    for name in ("generated", "mixed"):
        store.put(
            without_links(RUNS[name](tmp_path / "here" / f"{name}.trace")), f"all/{name}.trace"
        )
    url = f"s3://{BUCKET}/all"
    one = f"{url}/generated.trace"
    for name, words in {
        "below": (url,),
        "named": (one, f"{url}/mixed.trace/"),
        "half": (one, "here/mixed.trace"),
        "local": ("here",),
    }.items():
        done = inside("merge", *words, "-o", f"{name}.trace", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    local = read_bundle(tmp_path / "local.trace").tables
    for name in ("below", "named", "half"):
        assert read_bundle(tmp_path / f"{name}.trace").tables == local, name
    nothing = inside("merge", f"s3://{BUCKET}/nothing", "-o", "new.trace", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "no trace bundle there or directly below" in nothing.stderr


def test_what_is_no_bundle_is_said(store: Store, tmp_path: Path) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    whole = store.put(bundle, "killed.trace")
    with store.system().open_output_stream(f"{BUCKET}/killed.trace/spool/node1/0") as stream:
        stream.write(b"x")
    for url, says in (
        (f"s3://{BUCKET}/none.trace", "not a trace bundle (no manifest.json)"),
        (f"s3://{BUCKET}", "not a trace bundle"),
        ("s3://nosuchbucket/x.trace", "Check the name of the bucket"),
        (whole, "tracehint merge"),
        ("ftp://host/x.trace", "s3://, s3a://, hdfs://"),
        ("s3://", "no bucket"),
    ):
        done = inside("analyze", url, cwd=tmp_path)
        assert done.returncode == 2, url
        assert url in done.stderr and says in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


def test_a_password_in_a_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    done = inside("analyze", "s3://key:secret@bucket/x.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert "s3://bucket" in done.stderr and "AWS_PROFILE" in done.stderr
    assert "secret" not in done.stderr.replace("SECRET", "") and "key:" not in done.stderr


def test_wrong_credentials(store: Store, tmp_path: Path) -> None:
    url = store.put(RUNS["generated"](tmp_path / "b.trace"), "private.trace")
    store.demand_credentials(0)
    try:
        done = inside("analyze", url, cwd=tmp_path)
    finally:
        store.demand_credentials(1e9)
    assert done.returncode == 2
    assert f"{url}: cannot be read" in done.stderr, done.stderr
    assert "AWS_ACCESS_KEY_ID" in done.stderr


@pytest.mark.parametrize(("status", "says"), [(403, "AWS_ACCESS_KEY_ID"), (301, "AWS_REGION")])
def test_a_store_that_refuses(
    status: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No credentials, as Amazon answers then; a bucket of another region."""

    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            assert "Authorization" not in self.headers
            self.send_error(status)

        def log_message(self, *_: object) -> None:
            pass

    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        done = inside("analyze", "s3://runs/x.trace", cwd=tmp_path)
        server.shutdown()
        thread.join()
    assert done.returncode == 2
    assert "s3://runs/x.trace: cannot be read" in done.stderr
    assert says in done.stderr, done.stderr


def test_a_store_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server listens, or a server accepts the connection and never answers."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(bundle_files, "ANSWER_S", 1)
    monkeypatch.setattr(bundle_files, "ATTEMPTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (1, silent.getsockname()[1]):
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
            done = inside("analyze", "s3://runs/x.trace", cwd=tmp_path)
            assert done.returncode == 2
            assert "s3://runs/x.trace: cannot be read" in done.stderr
            assert "AWS_ENDPOINT_URL" in done.stderr


def test_a_failing_store_is_no_damaged_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object unreadable for a reason other than its content stops the analysis."""
    url = store.put(RUNS["two_hosts"](tmp_path / "b.trace"), "gone.trace")
    system = store.system()
    found = bundle_files.RemoteObjects.at(url)
    name = found.segments("extents")[-1]
    system.delete_file(f"{BUCKET}/gone.trace/{name}")
    monkeypatch.setattr(bundle_files.RemoteObjects, "at", lambda _: found)
    done = inside("analyze", url, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{url}/{name}: cannot be read" in done.stderr, done.stderr


def test_a_manifest_that_is_too_large(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = store.put(RUNS["empty"](tmp_path / "b.trace"), "large.trace")
    monkeypatch.setattr(bundle_files, "MAX_MANIFEST_BYTES", 10)
    done = inside("analyze", url, cwd=tmp_path)
    assert done.returncode == 2 and "manifest is larger" in done.stderr


def test_hdfs_without_hadoop_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    done = inside("analyze", "hdfs://name:9000/x.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert "hdfs://name:9000/x.trace: cannot be read" in done.stderr
    assert "CLASSPATH" in done.stderr and "--backend spark" in done.stderr
