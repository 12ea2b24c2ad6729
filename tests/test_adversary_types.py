"""What a task is called: texts and attempts that are easy to get wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.trees import P, grow, labelled
from tracehint.analyzer.tasks import cut_tasks
from tracehint.analyzer.tasks.describe import describe


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
    kids = [P([c, "x"], exit_code=e, label=f"{c}{i}")
            for i in range(2) for c, e in (("yes", first), ("head", last))]  # fmt: skip
    found = labelled(grow(run, P(["sh", "wf.sh"], *kids)))
    for i in range(2):
        file = run.file(f"pipe:[{i}]", kind="pipe")
        run.write(found[f"yes{i}"].procs[-1], file, 0, 10, at=1.0)
        run.read(found[f"head{i}"].procs[-1], file, 0, 10, at=1.0)
    tasks = [t for t in cut_tasks(run.bundle(tmp_path)).tasks.to_pylist() if not t["engine"]]
    assert [t["name"] for t in tasks] == ["yes x | head x"] * 2
    assert [t["exit_status"] for t in tasks] == [last] * 2
    assert [t["attempt"] for t in tasks] == attempts
