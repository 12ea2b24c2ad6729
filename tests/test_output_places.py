"""For every output path that cannot be written, the message names the path and a remedy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tracehint.cli import main
from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest, read_manifest
from tracehint.schemas.writer import BundleWriter

pytestmark = pytest.mark.slow

BUNDLES = (["merge", "RUN"], ["anonymize", "RUN"], ["import", "LOG"], ["record", "-o"])
FILES = (
    ["analyze", "RUN", "--format", "json"],
    ["hints", "RUN"],
    ["graph", "RUN", "--format", "dot"],
    ["report", "RUN"],
    ["lint", "RUN"],
    ["diff", "RUN", "RUN"],
    ["export", "RUN", "--to", "wfformat"],
    ["emit", "hints.json", "--store", "xattr"],
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a run, its hints, a log, and entries that no output may replace."""
    run = RunBuilder(cwd="/data")
    first = run.process(["sh", "w.sh"])
    for name in "ab":
        run.write(run.process([name], parent=first), run.file(f"/data/{name}"), 0, 9, at=1.0)
    run.save(tmp_path / "RUN")
    monkeypatch.chdir(tmp_path)
    save(tmp_path, rule("a", Replication=2))
    log = 'execve("/bin/w", ["w"], 0x7 /* 1 var */) = 0', "+++ exited with 0 +++"
    Path("LOG").write_text("".join(f"7 1700000000.000000 {line}\n" for line in log))
    Path("file").write_text("kept")
    Path("to-nothing").symlink_to("nothing")
    Path("to-run").symlink_to("RUN")
    return tmp_path


def contents(folder: str) -> dict[str, bytes]:
    """Return the content of every file below the folder."""
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def call(words: list[str], target: str) -> int:
    if words[0] == "record":
        return main(["record", "--quiet", "-o", target, "--", "true"])
    return main([*words, "-o", target])


@pytest.mark.parametrize(
    ("words", "target"),
    [(words, "to-run") for words in (*BUNDLES, *FILES)]
    + [(words, target) for words in (BUNDLES[0], BUNDLES[-1], FILES[0], FILES[3])
       for target in ("file/x", "/proc/x", "n" * 300, "to-nothing")],
    ids=lambda value: value[0] if isinstance(value, list) else value[:10],
)  # fmt: skip  # a table
@pytest.mark.usefixtures("place")
def test_a_place_that_cannot_be_used(
    words: list[str], target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = contents("RUN")
    capfd.readouterr()
    assert call(words, target) == (125 if words[0] == "record" else 2)
    told = capfd.readouterr().err.rstrip("\n").split("\n")
    assert target[:4] in told[-2] and told[-2].startswith("tracehint: "), told
    assert told[-1].startswith("  ") and len(told[-1]) > 12, told
    assert Path("file").read_text() == "kept"
    assert os.readlink("to-nothing") == "nothing" and not Path("nothing").exists()  # noqa: PTH115
    assert Path("to-run").is_symlink() and contents("RUN") == before


@pytest.mark.parametrize("words", FILES, ids=lambda words: words[0])
@pytest.mark.usefixtures("place")
def test_a_file_is_replaced_only_with_force(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(words, "file") == 2
    assert "--force" in capfd.readouterr().err
    assert Path("file").read_text() == "kept"
    assert call([*words, "--force"], "file") in (0, 1)
    assert Path("file").read_text() != "kept"


def test_a_bundle_is_replaced_only_with_force(tmp_path: Path) -> None:
    target = RunBuilder().save(tmp_path / "run")
    with pytest.raises(BundleError, match="exists"):
        BundleWriter(target)
    BundleWriter(target, force=True)
    (target / "other").write_text("kept")
    for force in (False, True):
        with pytest.raises(BundleError, match="not a trace bundle"):
            BundleWriter(target, force=force)
    assert (target / "other").read_text() == "kept"


def test_a_note_for_each_of_very_many_logs(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "run")
    notes = [f"log not read: {n}: {'x' * 1000}" for n in range(80_000)]
    writer.write_manifest(Manifest(notes=notes))
    found = read_manifest(tmp_path / "run").notes
    assert found[:5000] == notes[:5000] and found[5000:] == ["and 75,000 more notes"]


@pytest.mark.parametrize(
    ("words", "options"), [(FILES[0], []), *((words, ["--force"]) for words in FILES)]
)
@pytest.mark.usefixtures("place")
def test_a_device_is_written_to_and_stays(words: list[str], options: list[str]) -> None:
    """As root, replacing the device by a file would change /dev/null for everybody."""
    os.mkfifo("pipe")
    with Path("seen").open("wb") as seen, subprocess.Popen(["cat", "pipe"], stdout=seen):
        assert main([*words, "-o", "pipe", *options]) in (0, 1)
    assert Path("seen").stat().st_size
    assert Path("pipe").is_fifo()
