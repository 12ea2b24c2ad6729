"""Names and types of tasks: command texts and attempts that are easily misread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.trees import P, grow, labelled
from tracehint.analyzer.tasks.describe import describe
from tracehint.analyzer.tasks.segmentation import segment_tasks


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("set -euo pipefail;  seq 1000 > a.txt", "seq"),
        ("set -euo pipefail;  cat t a > g 2> g.log; echo hi >> g.log", "cat"),
        ("mkdir -p x && cat a > x/b", "cat"),
        ("cd x; echo done > flag", "echo"),
        ("echo start; cat a b > c", "cat"),
        ("set -e; touch x", "touch"),
        ("export A=1; wait", "export"),
    ],
)
def test_a_text_that_only_feeds_is_of_the_type_of_what_feeds(text: str, kind: str) -> None:
    assert describe([b"/bin/bash", b"-c", text.encode()]).type == kind


@pytest.mark.parametrize(("first", "last", "attempts"), [(141, 0, [1, 1]), (0, 3, [1, 2])])
def test_a_pipeline_failed_when_its_last_command_did(
    tmp_path: Path, first: int, last: int, attempts: list[int]
) -> None:
    run = RunBuilder()
    kids = [
        P([c, "x"], exit_code=e, label=f"{c}{i}")
        for i in range(2)
        for c, e in (("yes", first), ("head", last))
    ]
    found = labelled(grow(run, P(["sh", "wf.sh"], *kids)))
    for i in range(2):
        file = run.file(f"pipe:[{i}]", kind="pipe")
        run.write(found[f"yes{i}"].procs[-1], file, 0, 10, at=1.0)
        run.read(found[f"head{i}"].procs[-1], file, 0, 10, at=1.0)
    tasks = [t for t in segment_tasks(run.bundle(tmp_path)).tasks.to_pylist() if not t["engine"]]
    assert [t["name"] for t in tasks] == ["yes x | head x"] * 2
    assert [t["exit_status"] for t in tasks] == [last] * 2
    assert [t["attempt"] for t in tasks] == attempts


def test_the_name_of_a_text_of_several_lines_is_one_line() -> None:
    text = "set -euo pipefail;  \n    sort a \\\n\t -o b\n    wc b\n"
    found = describe([b"/bin/bash", b"-c", text.encode()])
    assert (found.name, found.type) == ("sort a \\ -o b wc b", "sort")
    assert "\\x0a" in found.command and found.command.isprintable()


def _chain(run: RunBuilder, *words: str, parent: int | None = None) -> list[int]:
    """One process that execs each of these commands in turn."""
    procs: list[int] = []
    for text in words:
        prev = procs[-1] if procs else None
        procs.append(run.process(text.split(), parent=None if procs else parent, prev=prev))
    return procs


_ROOT = "/home/u/.pyenv"
SHIM = (
    f"/usr/bin/env bash {_ROOT}/shims/python3 drive.py",
    f"bash {_ROOT}/shims/python3 drive.py",
    f"bash {_ROOT}/libexec/pyenv exec python3 drive.py",
    f"bash {_ROOT}/libexec/pyenv-exec python3 drive.py",
    f"{_ROOT}/versions/3.11.7/bin/python3 drive.py",
)


def test_a_driver_behind_a_version_manager_is_cut(tmp_path: Path) -> None:
    run = RunBuilder(cwd="/data")
    root = _chain(run, *SHIM)
    link = run.process([], parent=root[2])
    run.process(["readlink", "pyenv"], prev=link)
    own = run.file(f"{_ROOT}/version", existed=True)
    run.read(root[2], own, 0, 7, at=0.1)
    file = run.file("/data/x")
    for i, (name, use) in enumerate((("make_x", run.write), ("use_x", run.read))):
        proc = run.process([name], prev=run.process([], parent=root[-1]))
        use(proc, file, 0, 100, at=1.0 + i)
    tasks = segment_tasks(run.bundle(tmp_path)).tasks.to_pylist()
    assert [t["name"] for t in tasks if not t["engine"]] == ["make_x", "use_x"]
    assert [t["type"] for t in tasks if t["engine"]] == ["drive.py", "readlink"]


def test_busybox_is_what_its_first_argument_says(tmp_path: Path) -> None:
    run = RunBuilder(cwd="/data")
    shell = run.process(["busybox", "sh", "-c", "sort a > b; wc b"])
    file = run.file("/data/b")
    applet = run.process([], parent=shell)  # a fork of busybox runs the applet without exec
    run.write(applet, file, 0, 5, at=1.0)
    run.process(["busybox", "wc", "b"], prev=run.process([], parent=shell))
    tasks = segment_tasks(run.bundle(tmp_path)).tasks.to_pylist()
    assert [(t["type"], t["engine"]) for t in tasks] == [
        ("sort", True),
        ("subshell", False),
        ("wc", False),
    ]
    assert describe([b"/bin/busybox", b"tar", b"c"]).name == "tar c"
