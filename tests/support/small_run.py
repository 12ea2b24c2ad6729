"""A recorded run of a few small files, for tests of the commands' output."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import record

_SCRIPT = """mkdir -p out sub
for i in 1 2 3; do seq $((i*20000)) > out/x$i; done
for i in 1 2 3; do sort out/x$i > out/y$i; done
cat out/y1 out/y2 out/y3 > out/all
"""


def small_run(folder: Path) -> None:
    """Record the run as run.trace in the folder."""
    (folder / "run.sh").write_text(_SCRIPT)
    done = record("sh", "run.sh", collector="strace", options="", cwd=folder)
    assert done.returncode == 0, done.stderr
