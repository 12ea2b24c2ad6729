"""The reader of strace logs that the real runs are judged by, on a log written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.real.compare import Observed, Result
from tests.e2e.real.kernel import Kernel
from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.score import score
from tests.e2e.real.truth import Truth, establish
from tests.e2e.support import Run
from tracehint.analyzer.model import Options

LOG = """\
10 1.0 execve("/bin/sh", ["sh", "run.sh"], 0x1 /* 2 vars */) = 0
10 1.1 clone(child_stack=NULL, flags=SIGCHLD) = 11
11 1.2 openat(AT_FDCWD</w>, "a.tmp", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/a.tmp>
11 1.3 dup2(3</w/a.tmp>, 1) = 1</w/a.tmp>
11 1.4 execve("/bin/gen", ["gen", "\\"quoted\\"", "one"], 0x1 /* 2 vars */) = 0
11 1.5 write(1</w/a.tmp>, "a, <b", 40 <unfinished ...>
10 1.6 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
12 1.7 openat(AT_FDCWD</w>, "in", O_RDONLY|O_CLOEXEC) = 4</w/in>
10 1.8 <... clone resumed>) = 12
11 1.9 <... write resumed>) = 40
11 2.0 write(3</w/a.tmp>, ""..., 60) = 60
11 2.1 rename("a.tmp", "a") = 0
11 2.2 +++ exited with 0 +++
12 2.3 execve("/bin/use", ["use", "two"], 0x1 /* 2 vars */) = 0
12 2.4 openat(AT_FDCWD</w>, "a", O_RDONLY) = 4</w/a>
12 2.5 lseek(4</w/a>, 90, SEEK_SET) = 90
12 2.6 read(4</w/a>, ""..., 4096) = 10
12 2.7 read(4</w/a>, "", 4096) = 0
12 2.8 openat(AT_FDCWD</w>, "log", O_WRONLY|O_APPEND) = 5</w/log>
12 2.9 pwrite64(5</w/log>, ""..., 5, 0) = 5
12 3.0 write(5</w/log>, ""..., 5) = 5
12 3.1 openat(AT_FDCWD</w>, "none", O_RDONLY) = -1 ENOENT (No such file or directory)
12 3.2 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 4</w/a>, 0) = 0x7f00
12 3.3 +++ exited with 0 +++
"""
JOBS = [Job("gen", "gen "), Job("use", "use ")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def truth(log: Path, text: str) -> Truth:
    log.write_text(text)
    kernel = Kernel(Path("/w"), {"in": 10, "log": 100}).play(log)
    return establish(kernel, JOBS, Options(), 2)


def test_offsets_names_and_jobs(log: Path) -> None:
    found = truth(log, LOG)
    assert found.jobs == {"gen", "use"}
    assert found.uses == {
        ("gen", "a", "write"): [(0, 100)],
        ("use", "a", "read"): [(0, 100)],  # ten bytes read, all of them mapped
        ("use", "log", "write"): [(100, 110)],  # appending beats the offset of pwrite
    }
    assert found.mapped == {("use", "a", "read")}
    assert found.edges == {("gen", "a", "use"): 100}
    assert found.labels["a", 0] == {"pipeline"}


def test_without_the_mapping_only_the_bytes_read_count(log: Path) -> None:
    found = truth(log, "".join(x for x in LOG.splitlines(True) if "mmap" not in x))
    assert found.uses["use", "a", "read"] == [(90, 100)]
    assert found.edges == {("gen", "a", "use"): 10}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.6 read(4</w/a>", "2.6 read(4</w/b>"),  # strace says another file than was opened
        ('rename("a.tmp", "a")', 'rename("a.tmp", "/x/a")'),  # out of what is followed
        ("2.9 pwrite64", "2.9 what is this"),
    ],
)
def test_a_log_that_is_not_understood_is_an_error(log: Path, old: str, new: str) -> None:
    assert old in LOG
    with pytest.raises((AssertionError, AttributeError)):
        truth(log, LOG.replace(old, new))


def test_the_score_counts_what_differs(log: Path) -> None:
    """An access missed, one invented, 15 of a hundred bytes wrong, an edge and a label gone."""
    found = truth(log, LOG)
    workflow = Workflow("x", "x", (), lambda _: None, (), list)
    same = Observed(
        dict(found.uses), dict(found.edges), dict(found.labels), dict(found.primary), {}
    )
    run = Run(log, {"tasks": [], "files": []})
    perfect = score(Result(workflow, run, same, found))
    assert (perfect.precision, perfect.recall, perfect.byte_error) == (1, 1, 0)
    assert (perfect.label_agreement, perfect.false_edges, perfect.missed_edges) == (1, 0, 0)
    same.uses[("use", "other", "read")] = same.uses.pop(("use", "log", "write"))
    same.uses[("gen", "a", "write")] = [(5, 95), (100, 105)]
    same.edges.clear()
    same.labels[("a", 0)] = {"broadcast"}
    wrong = score(Result(workflow, run, same, found))
    assert (wrong.accesses, wrong.false_accesses, wrong.missed_accesses) == (2, 1, 1)
    assert wrong.wrong_bytes == 10 + 5 + 2 * 10
    assert wrong.worst_bytes == 15 / 100
    assert (wrong.edges, wrong.missed_edges) == (0, 1)
    assert wrong.label_agreement < 0.7
