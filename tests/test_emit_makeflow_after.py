"""A rule that does not write its output fails with hints as it does without, in any directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.hints import rule
from tests.support.patience import PATIENCE_S
from tests.test_emit_makeflow import emit, write
from tracehint.adapters.engines.makeflow.emit import leaves, refuses
from tracehint.adapters.engines.makeflow.workflow import read_workflow
from tracehint.hintgen.hints.model import Rule

COMMANDS = {
    "nothing": "true", "elsewhere": "cd sub && true", "there and back": "cd sub; cd ..; true",
    "exec": "exec true", "own trap": "trap true EXIT; true", "subshell": "(cd sub; true)",
    "fails": "false", "killed": "python3 -c 'import os; os.kill(os.getppid(), 9)'",
    "shell": "sh -c 'cd sub && true'",
}  # fmt: skip  # a table
WRITES = {
    "plainly": "echo 1 > o_1", "elsewhere": "cd sub && echo 1 > ../o_1",
    "replaces": "rm -f o_1; echo 1 > t && mv t o_1", "exec": "exec sh -c 'echo 1 > o_1'",
}  # fmt: skip  # a table


def rules(path: Path) -> tuple[Rule, Rule]:
    """Return hints for both outputs, as learned from tasks of these types."""
    first, last = read_workflow(path).tasks
    return (
        rule("o_{n}", DP="local", producer=first.type, consumers=(last.type,)),
        rule("seen", DP="local", producer=last.type, consumers=()),
    )


def outcome(folder: Path, done: subprocess.CompletedProcess[str]) -> tuple[object, ...]:
    """Summarise Makeflow's result, as it also exits with 0 when a rule fails."""
    there = sorted(name for name in ("o_1", "seen") if (folder / name).exists())
    return done.returncode, there, "rule 0 failed" in done.stdout + done.stderr


def run(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run Makeflow on a file of the folder, with an empty log."""
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    for path in folder.glob("*.makeflowlog"):
        path.unlink()
    return subprocess.run(
        ["makeflow", "-T", "local", name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def workflow(folder: Path, command: str) -> Path:
    (folder / "sub").mkdir()
    return write(folder, f"o_1:\n\t{command}\n\nseen: o_1\n\tcat o_1 > seen\n")


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("more", [(), ("--precreate",)], ids=["after", "precreate"])
def test_a_missing_output_is_noticed(tmp_path: Path, command: str, more: tuple[str, ...]) -> None:
    path = workflow(tmp_path, COMMANDS[command])
    plain = outcome(tmp_path, run(tmp_path, "w.mf"))
    assert plain[1:] == ([], True)
    emit(path, *rules(path), more=more)
    assert outcome(tmp_path, run(tmp_path, "out.mf")) == plain


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize("more", [(), ("--precreate",)], ids=["after", "precreate"])
def test_outputs_are_tagged_when_the_rule_has_ended(
    tmp_path: Path, command: str, more: tuple[str, ...]
) -> None:
    """Also a file that was created and tagged before the rule, if the rule replaces it."""
    path = workflow(tmp_path, WRITES[command])
    emit(path, *rules(path), more=more)
    done = run(tmp_path, "out.mf")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "seen").read_text() == "1\n"
    assert os.getxattr(tmp_path / "seen", "user.DP") == b"local"
    if command != "exec":  # exec replaces the shell that would tag
        assert os.getxattr(tmp_path / "o_1", "user.DP") == b"local"


def test_nothing_is_made_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = workflow(tmp_path, WRITES["elsewhere"])
    emit(path, *rules(path))
    table = (tmp_path / "out.mf.tracehint" / "table").read_bytes()
    assert b"A\0o_1\0" in table and b"C\0" not in table
    assert "tagged after their rule ends" in capsys.readouterr().err
    emit(path, *rules(path), more=("--precreate",))
    table = (tmp_path / "out.mf.tracehint" / "table").read_bytes()
    assert b"A\0o_1\0" in table and b"C\0seen\0" in table
    assert "1 rule change directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "expected"),
    [("cd x && y", True), ("a;cd x", True), ("(cd x)", True), ("exec y", True), (". ./env", True),
     ("abcd x", False), ("./cd x", False), ("a --cd x", False), ("sort a.cd > b", False)],
)  # fmt: skip  # a table
def test_which_rules_leave_their_directory(command: str, expected: bool) -> None:
    assert leaves(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [("mkdir -p o && cp in o/a", True), ("ln -s in o", True), ("ln in 'o'", True),
     ("mkfifo p o; cat", True), ("mkdir o/", True), ("mkdir -p d && cp in o", False),
     ("ln -s in x; cat x >o", False), ("./mkdir o", False), ("sort in >o", False)],
)  # fmt: skip  # a table
def test_which_rules_make_what_a_file_stands_in_the_way_of(command: str, expected: bool) -> None:
    assert refuses(command, [b"o"]) == expected


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("command", ["mkdir o_1 && cp in o_1/a", "ln -s in o_1", "ln in o_1"])
def test_directories_and_links_are_made_by_their_rule(tmp_path: Path, command: str) -> None:
    path = tmp_path / "w.mf"
    path.write_text(f"o_1: in\n\t{command}\nseen: o_1\n\tls o_1 > seen\n")
    (tmp_path / "in").write_text("1\n")
    emit(path, *rules(path), more=("--precreate",))
    done = run(tmp_path, "out.mf")
    assert (tmp_path / "seen").exists(), done.stdout + done.stderr
    assert (tmp_path / "o_1").is_dir() or (tmp_path / "o_1").samefile(tmp_path / "in")
