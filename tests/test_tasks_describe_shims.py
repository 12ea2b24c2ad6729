"""Version managers' shims are looked through; forked shells without a program have a name."""

from __future__ import annotations

import pytest

from tracehint.analyzer.tasks.describe import describe


@pytest.mark.parametrize(
    ("argv", "kind", "command"),
    [
        ("/usr/bin/env bash /root/.pyenv/shims/python3 fit.py 3", "fit.py", "python3 fit.py 3"),
        ("/bin/sh /home/me/.asdf/shims/Rscript plot.R", "plot.R", "Rscript plot.R"),
        ("bash /data/shims/x", "x", "x"),
        ("bash run.sh /root/shims/python3", "run.sh", "bash run.sh /root/shims/python3"),
    ],
)
def test_shims_are_looked_through(argv: str, kind: str, command: str) -> None:
    found = describe([word.encode() for word in argv.split()])
    assert (found.type, found.command) == (kind, command)


def test_a_shell_without_a_program_is_a_subshell() -> None:
    assert describe([]).type == "subshell"
