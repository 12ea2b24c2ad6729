"""`--option convert=later`: the spool remains, without secrets, and reads like the tables."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tracehint.schemas.spool.redact import redact_spool
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.ebpf]
SCRIPT = 'printf hello >one; cat one one >two; mv two three; curl -u "me:$2" file:///nowhere; true'


def record(bundle: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = ("--collector", "ebpf", *options, "-o", bundle)
    command = ("sh", "-c", SCRIPT, "sh", "--password", "hunter2")
    return tracehint("record", *words, "--", *command, cwd=bundle.parent)


def facts(bundle: Bundle) -> dict[str, Counter[object]]:
    """Return the facts that do not differ from run to run."""
    own = os.fsencode(bundle.path.parent) + b"/"  # reads of libraries depend on the page cache
    opens, names = bundle.tables["opens"], bundle.tables["names"]
    sizes = zip(
        opens["path"].to_pylist(),
        opens["read_bytes"].to_pylist(),
        opens["write_bytes"].to_pylist(),
        strict=True,
    )
    return {
        "argv": Counter(map(repr, bundle.tables["processes"]["argv"].to_pylist())),
        "opens": Counter(row for row in sizes if row[0].startswith(own)),
        "names": Counter(
            row
            for row in zip(names["op"].to_pylist(), names["path"].to_pylist(), strict=True)
            if row[1].startswith(own)
        ),
    }


def test_reads_as_the_tables_would_and_holds_no_secret(tmp_path: Path) -> None:
    """The same run twice: converted at once, and later."""
    bundles = {}
    for when in ("now", "later"):
        for name in ("one", "three"):
            (tmp_path / name).unlink(missing_ok=True)
        done = record(tmp_path / f"{when}.trace", "--option", f"convert={when}")
        assert done.returncode == 0, done.stderr
        bundles[when] = read_bundle(tmp_path / f"{when}.trace")
    now, later = bundles["now"], bundles["later"]
    assert facts(later) == facts(now)
    assert now.problems == later.problems == []
    assert later.manifest.complete
    assert later.manifest.redacted_args == now.manifest.redacted_args > 0
    files = [p for p in (tmp_path / "later.trace").rglob("*") if p.is_file()]
    assert not [p for p in files if p.suffix == ".parquet"]
    for path in files:
        assert b"hunter2" not in path.read_bytes()


def test_merge_writes_the_tables(tmp_path: Path) -> None:
    assert record(tmp_path / "later.trace", "--option", "convert=later").returncode == 0
    assert tracehint("merge", "later.trace", "-o", "tables.trace", cwd=tmp_path).returncode == 0
    merged = read_bundle(tmp_path / "tables.trace")
    assert not (tmp_path / "tables.trace" / "spool").exists()
    assert facts(merged) == facts(read_bundle(tmp_path / "later.trace"))


@pytest.mark.parametrize(
    "options", [("--option", "convert=never"), ("--option", "convert=later", "--keep-args")]
)
def test_what_cannot_be_is_refused_before_the_command_runs(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = record(tmp_path / "b.trace", *options)
    assert done.returncode == 125
    assert "convert" in done.stderr
    assert not (tmp_path / "one").exists()


def test_arguments_that_two_processes_share(tmp_path: Path) -> None:
    """One location in the heap, two records: both are redacted."""
    from tracehint.schemas.spool.redact import _EXEC

    text = b"curl\0--password\0hunter2\0"
    (tmp_path / "heap.bin").write_bytes(b"before\0" + text + b"after\0")
    (tmp_path / "execs.bin").write_bytes(
        b"".join(_EXEC.pack(epoch, 0, 7, len(text), 0, 0) for epoch in (1, 2)) + b"torn"
    )

    assert redact_spool(tmp_path) == 2
    heap, execs = (tmp_path / "heap.bin").read_bytes(), (tmp_path / "execs.bin").read_bytes()
    assert b"hunter2" not in heap
    assert heap.startswith(b"before\0\0")
    assert b"after\0" in heap
    for at in (0, _EXEC.size):
        _, _, offset, length, _, _ = _EXEC.unpack_from(execs, at)
        assert heap[offset : offset + length] == b"curl\0--password\0<redacted>\0"
    assert execs.endswith(b"torn")
