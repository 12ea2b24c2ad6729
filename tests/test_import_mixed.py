"""Directories in practice: logs of several kinds, damaged ones, copies, other files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import IO, Any

import pytest

from tests.test_engine_graphs import JOBLOG, MAKEFLOW, PEGASUS, instance, save
from tests.test_engine_logs import record
from tracehint.cli import main
from tracehint.collectors.clocks import note_distant_logs
from tracehint.commands.import_ import copies, sort_sources
from tracehint.errors import InputError
from tracehint.schemas.store import read_bundle

LOGS = Path(__file__).parent.parent / "datasets" / "darshan-logs"
DAY = 86_400 * 10**9


def strace(*lines: str, at: int = 1_700_000_000) -> str:
    return "".join(f"7 {at + n}.5 {line}\n" for n, line in enumerate(lines))


RUN = strace(
    'execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0',
    'open("/f", O_RDONLY) = 3',
    'read(3, "x"..., 9) = 9',
    "+++ exited with 0 +++",
)


def mixed(folder: Path) -> None:
    """Write three strace logs (one copied, one truncated), two graphs, and files of other kinds."""
    save(folder, "aaa/notes.txt", "dear diary,\nno log today\n")
    for n in range(80):  # more than are examined to guess the kind of a directory
        save(folder, f"aaa/picture{n}.png", b"\x89PNG\r\n" + bytes(range(200)))
    save(folder, "empty.log", "")
    save(folder, "one.strace", RUN)
    save(folder, "copy of one.strace", RUN)
    save(folder, "cut.strace", RUN[: len(RUN) // 2])
    save(folder, "graphs/jobs.tsv", JOBLOG)
    save(folder, "graphs/i.json", json.dumps(instance("1.5")))
    (folder / "loop").symlink_to(folder)
    (folder / "gone").symlink_to(folder / "nothing")
    os.mkfifo(folder / "pipe")


def test_everything_that_can_be_read_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mixed"
    mixed(folder)
    assert main(["import", str(folder), "-o", str(tmp_path / "b.trace")]) == 0
    said = capsys.readouterr().err
    bundle = read_bundle(tmp_path / "b.trace")
    notes = "\n".join(bundle.manifest.notes)
    for line in (
        "empty.log: empty",
        "one.strace: a copy of",
        "loop, gone: a symbolic link",
        "pipe: not a regular file",
        "and 76 more: not a log that",
    ):
        assert line in said and line in notes, line
    assert "nothing observed" not in notes
    assert bundle.tables["processes"].num_rows == 2
    assert bundle.tables["declared_tasks"].num_rows == 5
    assert "bytes" not in bundle.manifest.blind_to
    assert main(["analyze", str(tmp_path / "b.trace"), "-o", str(tmp_path / "a.json")]) == 0


@pytest.mark.slow
def test_darshan_and_strace_logs_side_by_side(tmp_path: Path) -> None:
    pytest.importorskip("darshan")
    folder = tmp_path / "d"
    shutil.copytree(LOGS / "pipeline", folder)
    count = len(list(folder.glob("*.darshan")))
    first = min(folder.glob("*.darshan"))
    shutil.copy(first, folder / "again.darshan")
    (folder / "cut.darshan").write_bytes(first.read_bytes()[:200])
    save(folder, "run.strace", RUN)
    assert main(["import", str(folder), "-o", str(tmp_path / "b.trace"), "--quiet"]) == 0
    bundle = read_bundle(tmp_path / "b.trace")
    notes = "\n".join(bundle.manifest.notes)
    assert bundle.tables["processes"].num_rows == count + 1
    assert "log not read" in notes and "cut.darshan" in notes
    assert "a copy of" in notes
    assert "days before the others begin" in notes  # the strace log is years older


def test_one_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, "d/good.strace", RUN)
    save(tmp_path, "d/secret.strace", RUN + "7 1700000009.5 +++ exited with 0 +++\n")
    real = Path.open

    def refuse(self: Path, *rest: Any, **more: Any) -> IO[Any]:
        if self.name == "secret.strace":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *rest, **more)

    monkeypatch.setattr(Path, "open", refuse)
    assert main(["import", str(tmp_path / "d"), "-o", str(tmp_path / "b.trace")]) == 0
    notes = read_bundle(tmp_path / "b.trace").manifest.notes
    assert "left out: secret.strace: Permission denied" in notes


def test_nothing_usable_is_exit_2_with_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, "d/a.png", b"\x89PNG")
    save(tmp_path, "d/b", "")
    assert main(["import", str(tmp_path / "d"), "-o", str(tmp_path / "b.trace")]) == 2
    said = capsys.readouterr().err
    assert "a.png: not a log that tracehint knows" in said and "b: empty" in said
    assert not (tmp_path / "b.trace").exists()
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no files in it"):
        sort_sources([tmp_path / "none"], None)


def test_files_that_are_read_together_count_once(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    folder = tmp_path / "d"
    save(folder, "w.mf", MAKEFLOW)
    save(folder, "w.mf.makeflowlog", "# STARTED 1795168665296645\n1795168665297496 0 1 7 3 1 0\n")
    save(folder, "pegasus/workflow.yml", PEGASUS)
    save(folder, "pegasus/00/00/m_ID1.out.000", record("ID1", 9))
    found = sort_sources([folder], None)
    assert [p.name for p in found.work["graph"]] == ["w.mf", "workflow.yml"]
    assert not found.left_out


def test_a_directory_of_an_engine_is_one_source(tmp_path: Path) -> None:
    save(tmp_path, ".snakemake/metadata/YQ==", json.dumps({"rule": "r", "input": ["b"]}))
    save(tmp_path, "a", "result")
    log = save(tmp_path, "run.strace", RUN)
    assert sort_sources([tmp_path], None).work == {"graph": [tmp_path], "strace": [log]}


def test_processes_with_equal_logs_are_no_copies(tmp_path: Path) -> None:
    paths = [save(tmp_path, name, RUN) for name in ("x.10", "x.11", "a.log", "b.log")]
    assert copies(paths) == {paths[3]: paths[2]}


def test_logs_that_lie_days_apart() -> None:
    hour = DAY // 24
    near = [(DAY, DAY + hour), (DAY + hour, None), (0, None), (2 * DAY, 2 * DAY)]
    assert note_distant_logs(near) == "" == note_distant_logs([])
    assert note_distant_logs([*near, (9 * DAY, None)]).startswith("3 of 4 logs end 7 days before")
    # a long log bridges the gap
    assert note_distant_logs([*near, (9 * DAY, None), (DAY, 9 * DAY)]) == ""
