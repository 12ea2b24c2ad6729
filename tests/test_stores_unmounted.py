"""`apply` and `verify` on stores without a mount: the arguments of their tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tests.support.hostile import HOSTILE_NAMES
from tests.support.store_tools import calls_of, environment, tool

pytestmark = pytest.mark.slow
STAT = 'case "$*" in *stat*) echo "${ANSWER-3}" ;; esac'


def _run(
    folder: Path, verb: str, *words: str, store: str = "hdfs", answer: str = "3"
) -> subprocess.CompletedProcess[str]:
    env = {**environment(folder), "ANSWER": answer}
    return tracehint(verb, "hints.json", "--store", store, *words, cwd=folder, env=env)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A hint file with a number of copies, and a tool that logs its arguments."""
    tool(tmp_path / "bin", "hdfs", STAT)
    save(tmp_path, rule("many.bin", producer=None, Replication="3"))
    return tmp_path


def test_the_tool_is_called_with_names_of_the_store(folder: Path) -> None:
    told = _run(folder, "apply", "--as-root", "--dry-run", "/wf/run7")
    assert told.returncode == 0, told.stderr
    assert "hdfs dfs -setrep 3 /wf/run7/many.bin" in told.stdout
    assert not (folder / "calls").exists()
    done = _run(folder, "apply", "--as-root", "/wf/run7/")
    assert done.returncode == 0, done.stderr
    assert [call[1:] for call in calls_of(folder)] == [
        ["hdfs", "dfs", "-setrep", "3", "/wf/run7/many.bin"]
    ]


def test_what_cannot_be_taken_back_is_told(folder: Path) -> None:
    done = _run(folder, "apply", "--as-root", "--undo", "/wf")
    assert done.returncode == 0
    assert not (folder / "calls").exists()
    assert "1 setting that no call can undo: the former number" in done.stderr


@pytest.mark.parametrize(("answer", "code"), [("3", 0), ("1", 1), ("no such file", 1)])
def test_the_tool_is_asked_file_by_file(folder: Path, answer: str, code: int) -> None:
    done = _run(folder, "verify", "/wf", answer=answer)
    assert done.returncode == code, done.stderr
    assert [call[1:] for call in calls_of(folder)] == [
        ["hdfs", "dfs", "-stat", "%r", "/wf/many.bin"]
    ]


def test_a_tool_that_cannot_be_asked_is_a_reading_that_failed(folder: Path) -> None:
    tool(folder / "bin", "chirp")
    (folder / "m.toml").write_text('server = "head:9000"\n')
    done = _run(folder, "verify", "--map", "m.toml", "/wf", store="confuga")
    assert done.returncode == 1
    assert "cannot report it" in done.stdout
    done = _run(folder, "apply", "--as-root", "--map", "m.toml", "/wf", store="confuga")
    assert done.returncode == 0, done.stderr
    assert calls_of(folder)[-1][1:] == ["chirp", "head:9000", "setrep", "/wf/many.bin", "3"]


@pytest.mark.parametrize(
    "place", ["wf", ".", "/wf/../x", "/a b", "/$(id)", "/*", "/wf\nx", "-rf", "/" + "x" * 300]
)
@pytest.mark.parametrize("verb", ["apply", "verify"])
def test_no_other_directory_reaches_the_tool(folder: Path, verb: str, place: str) -> None:
    more = ["--as-root"] if verb == "apply" else []
    done = _run(folder, verb, *more, "--", place)
    assert done.returncode == 2
    assert "has no mount" in done.stderr
    assert "for example /wf/run7" in done.stderr
    assert not (folder / "calls").exists()


def test_no_odd_name_reaches_the_tool(folder: Path) -> None:
    names = [n for n in HOSTILE_NAMES if b"\n" not in n and b"\0" not in n]
    (folder / "names").write_bytes(b"\n".join(names) + b"\n")
    save(folder, rule("{name}", producer=None, Replication="3"))
    for verb, more in (("apply", ["--as-root"]), ("verify", [])):
        done = _run(folder, verb, *more, "--names", "names", "/wf")
        assert "Traceback" not in done.stderr
    calls = calls_of(folder) if (folder / "calls").exists() else []
    for call in calls:
        path = next(word for word in call[2:] if word.startswith("/wf"))
        assert set(path) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+=,~/-"
        )
