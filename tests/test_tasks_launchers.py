"""A driver in Python, started directly and by launchers that exec or fork, really recorded."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.answers import ENGINES, Answer, analyzed, answer

pytestmark = [pytest.mark.ebpf, pytest.mark.slow]

DRIVER = """
import subprocess
sorts = [subprocess.Popen(["sort", "-o", f"s{i}", "in.txt"]) for i in range(3)]
for one in sorts:
    one.wait()
for i in range(3):
    subprocess.run(f"tr a-z A-Z < s{i} > u{i}", shell=True, check=True)
subprocess.run("cat u0 u1 u2 > all", shell=True, check=True)
"""
TYPES = ["cat", "sort", "sort", "sort", "tr", "tr", "tr"]
# Programs that imitate launchers: they exec the given command, or fork and wait.
LAUNCHERS = {
    "srun": '#!/bin/sh\nshift\n"$@"\n',
    "singularity": "#!{python}\nimport os, sys\nos.execvp(sys.argv[3], sys.argv[3:])\n",
    "conda": "#!{python}\nimport subprocess, sys\nsys.exit(subprocess.call(sys.argv[4:]))\n",
    "launch": '#!/usr/bin/env bash\nexec "$@"\n',
}
# commands to run; {run} is the driver
COMMANDS = {
    "directly": "{run}",
    "script": "bash ./w.sh",
    "sh -c": "sh -c 'cd . && {run}'",
    "make": "make -f ./Makefile run",
    "env": "env A=1 {run}",
    "timeout": "timeout 60 {run}",
    "nohup": "nohup {run}",
    "conda": "./conda run -n base {run}",
    "srun": "./srun -n1 {run}",
    "singularity": "./singularity exec image.sif {run}",
    "launch": "./launch {run}",
    "script in make": "make -f ./Makefile script",
    "timeout in script in conda": "./conda run -n base bash ./t.sh",
    "singularity in srun": "./srun -n1 ./singularity exec image.sif {run}",
}


def recorded(tmp_path: Path, collector: str, command: str) -> Answer:
    work = tmp_path / "work"
    work.mkdir()
    run = f"{sys.executable} ./wf.py"
    files = {
        "wf.py": DRIVER,
        "in.txt": "b\na\n" * 5000,
        "w.sh": f"{run}\n",
        "t.sh": "timeout 60 bash ./w.sh\n",
        "Makefile": f"run:\n\t{run}\nscript:\n\tbash ./w.sh\n",
    }
    for name, text in files.items():
        (work / name).write_text(text)
    for name, text in LAUNCHERS.items():
        (work / name).write_text(text.replace("{python}", sys.executable))
        (work / name).chmod(0o755)
    return answer(tmp_path, command.format(run=run), collector, "sh")


# Each with one collector, in turn; with the other one in `make test-full`.
CASES = [
    pytest.param(name, collector, marks=[pytest.mark.full] * ((row + column) % 2))
    for row, name in enumerate(COMMANDS)
    for column, collector in enumerate(ENGINES)
]


@pytest.mark.parametrize(("name", "collector"), CASES)
def test_the_driver_gives_its_tasks(tmp_path: Path, collector: str, name: str) -> None:
    if name.endswith("make") and not shutil.which("make"):
        pytest.skip("make is not installed")
    found = recorded(tmp_path, collector, COMMANDS[name])
    tasks = [t for t in found.data["tasks"] if not t["engine"]]
    assert sorted(t["type"] for t in tasks) == TYPES
    assert len(found.edges) == 6
    assert found.labels("in.txt")[0] == "broadcast"
    assert not any("--split" in note for note in found.data["run"]["completeness"]["notes"])


def test_what_the_user_says_wins(tmp_path: Path) -> None:
    recorded(tmp_path, "strace", COMMANDS["script"])
    whole = analyzed(tmp_path / "run.trace", "--whole", "wf.py")
    assert [t["type"] for t in whole.data["tasks"] if not t["engine"]] == ["wf.py"]
    assert whole.data["run"]["parameters"]["whole"] == ["wf.py"]
    inside = analyzed(tmp_path / "run.trace", "--whole", "cat", "--split", "wf.py")
    assert sorted(t["type"] for t in inside.data["tasks"] if not t["engine"]) == TYPES
