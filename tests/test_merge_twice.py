"""`merge` rejects a recording that is passed twice, under any name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.store import read_bundle


def saved(folder: Path, name: str, recording: str) -> Path:
    run = RunBuilder(host=name)
    run.manifest.hosts = [RecordingHost(name=name)]
    run.manifest.recording = recording
    run.write(run.process(["make"]), run.file(f"/data/{name}", existed=False), 0, 10, at=1)
    return run.save(folder / f"{name}.trace")


@pytest.fixture(params=["stated", "older"])
def bundles(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """Two recordings, with an identity in the manifest ("stated") or without one ("older")."""
    stated = request.param == "stated"
    return (
        saved(tmp_path, "a", "1f" * 16 if stated else ""),
        saved(tmp_path, "b", "2e" * 16 if stated else ""),
    )


def refused(folder: Path, *paths: Path) -> str:
    done = inside("merge", *map(str, paths), "-o", "twice.trace", cwd=folder)
    assert done.returncode == 2
    assert not (folder / "twice.trace").exists()
    assert "contain the same recording" in done.stderr
    return done.stderr


def test_copies_and_links(tmp_path: Path, bundles: tuple[Path, Path]) -> None:
    a, b = bundles
    copy, link = tmp_path / "other.trace", tmp_path / "link.trace"
    shutil.copytree(a, copy)
    link.symlink_to(a)
    for other in (a, copy, link):
        text = refused(tmp_path, a, b, other)
        assert str(a) in text
        assert str(other) in text


@pytest.mark.slow
def test_a_merged_bundle_holds_its_parts(tmp_path: Path, bundles: tuple[Path, Path]) -> None:
    a, b = bundles
    for output, parts in (("ab.trace", (a, b)), ("again.trace", (tmp_path / "ab.trace",))):
        done = inside("merge", *map(str, parts), "-o", output, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        merged = read_bundle(tmp_path / output)
        assert len(merged.manifest.parts) == 2
        assert merged.tables["processes"].num_rows == 2
        assert str(tmp_path / output) in refused(tmp_path, a, tmp_path / output)
        assert str(b) in refused(tmp_path, tmp_path / output, b)
    refused(tmp_path, tmp_path / "ab.trace", tmp_path / "again.trace")


def test_each_recording_has_an_identity_of_its_own(tmp_path: Path) -> None:
    from tracehint.collectors.base import RecordRequest
    from tracehint.collectors.begin import new_manifest

    request = RecordRequest(("true",), tmp_path / "x")
    found = {new_manifest(request, "strace").recording for _ in range(3)}
    assert len(found) == 3
    assert all(len(text) == 32 for text in found)


def test_an_imported_recording_is_still_the_same(tmp_path: Path) -> None:
    """The log of a killed recorder was imported, then both bundles are merged."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    done = inside("record", "--collector", "strace", "-o", "a", "--", "true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = read_bundle(tmp_path / "a").manifest
    log = tmp_path / "b" / "raw" / "strace.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b'7 1700000000.0 execve("/bin/true", ["true"], 0x7f /* 3 vars */) = 0\n')
    manifest.ended_ns, manifest.complete, manifest.rows = None, False, {}
    from tracehint.schemas.manifest import manifest_to_json

    (tmp_path / "b" / "manifest.json").write_text(manifest_to_json(manifest))
    assert inside("import", "b", "-o", "c", cwd=tmp_path).returncode == 0
    refused(tmp_path, tmp_path / "b", tmp_path / "c")
