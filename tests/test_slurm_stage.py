"""Slurm with node-local copies: one sbcast per node, the same results, and no files left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hints import rule
from tests.support.plans import planned, save_plan
from tests.support.slurm import Cluster, cluster, missing
from tracehint.adapters.engines.slurm.emit import SCRIPT
from tracehint.cli import main
from tracehint.hintgen.hints.model import FilePart

ROWS = '[[host]]\nname = "node1"\nslots = 2\n[[host]]\nname = "node2"\nslots = 2\n'
READERS = 4
# each reader prints where it read the shared file; `mid` goes to a second rule of the same part
WORKFLOW = (
    "".join(
        f"mid_{i}.txt: ref/db.bin in.txt\n"
        f"\t(readlink -f ref/db.bin; hostname; cksum <ref/db.bin; ls ref) > mid_{i}.txt\n"
        f"out/{i}.txt: mid_{i}.txt\n"
        f"\tmkdir -p out; (readlink -f mid_{i}.txt; cat mid_{i}.txt) > out/{i}.txt\n"
        for i in range(READERS)
    )
    + "away.txt: ref/db.bin\n\tcd ref; readlink -f db.bin > ../away.txt\n"
)
PLAN = {f"n{k}": (k // 2) % 2 for k in range(2 * READERS)} | {"away.txt": 0}


def _emit(folder: Path, local: Path | str) -> Path:
    (folder / "ref").mkdir()
    (folder / "ref" / "db.bin").write_bytes(os.urandom(100_000))
    (folder / "ref" / "small").write_text("x")
    (folder / "in.txt").write_text("in\n")
    (folder / "w.mf").write_text(WORKFLOW)
    shared = FilePart("ref/db.bin", None, {"Replication": "2"})
    hints = save_plan(folder, planned(PLAN, [shared], [rule("x", DP="local")]))
    (folder / "hosts.toml").write_text(ROWS)
    out = folder / "jobs.sh"
    command = [
        "emit",
        str(hints),
        "--workflow-engine",
        "slurm",
        str(folder / "w.mf"),
        "--hosts",
        str(folder / "hosts.toml"),
        "-o",
        str(out),
        "--local-dir",
        str(local),
    ]
    assert main(command) == 0
    return out


def test_a_copy_job_comes_first_and_a_cleaning_one_last(tmp_path: Path) -> None:
    text = _emit(tmp_path, "/local/scratch").read_text()
    first, last = text.index("stage copy /local/scratch ref/db.bin"), text.index("stage clean")
    assert first < text.index("\nj0=") < last
    assert text.count("stage run /local/scratch") == 2 * READERS
    assert (tmp_path / "jobs.sh.stage").read_bytes() == SCRIPT.read_bytes()
    assert "\ncd ref" not in text and "'cd ref; readlink" in text, "a rule that leaves its folder"


@pytest.mark.parametrize("local", ["scratch", "/a b", "/x;id", "/x/../y", "/$(id)", "/x\n"])
def test_an_odd_directory_is_refused(tmp_path: Path, local: str) -> None:
    with pytest.raises(AssertionError):
        _emit(tmp_path, local)
    assert not (tmp_path / "jobs.sh").exists()


def test_without_copies_the_command_runs_in_place(tmp_path: Path) -> None:
    """No copy job, a copy of another user, or a read-only directory."""
    env = {"PATH": os.environ["PATH"], "TRACEHINT_RUN": "1"}
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tracehint-1").symlink_to(tmp_path / "elsewhere")
    for local in (tmp_path, tmp_path / "none"):
        words = ["sh", SCRIPT, "run", local, "pwd; exit 3", "a"]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert (done.stdout.strip(), done.returncode) == (str(tmp_path), 3), done.stderr


def test_what_a_command_makes_comes_back(tmp_path: Path) -> None:
    """New files, folders and links, overwritten and replaced files, unusual names."""
    work, keep = tmp_path / "work", tmp_path / "local" / "tracehint-1"
    (work / "sub").mkdir(parents=True)
    keep.mkdir(parents=True)
    (keep / "sub").mkdir()
    (keep / "sub" / "in").write_text("copy")
    for name in ("sub/in", "sub/other", "over", "gone"):
        (work / name).write_text("shared")
    line = (
        "cat sub/in > 'new $(touch evil)'; echo x > over; rm gone; echo y > gone; mkdir -p d/e; "
        "ln -s over link; echo z > sub/made; echo k > kept; cat sub/other; exit 4"
    )
    env = {"PATH": os.environ["PATH"], "TRACEHINT_RUN": "1"}
    words = ["sh", SCRIPT, "run", tmp_path / "local", line, "sub/in", "kept"]
    done = subprocess.run(words, cwd=work, env=env, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("shared", 4), done.stderr
    made = {p.relative_to(work).as_posix() for p in work.rglob("*")}
    assert made == {
        "sub",
        "sub/in",
        "sub/other",
        "sub/made",
        "over",
        "gone",
        "d",
        "d/e",
        "link",
        "new $(touch evil)",
        "kept",
    }
    assert (work / "new $(touch evil)").read_text() == "copy"
    assert [(work / n).read_text() for n in ("over", "gone", "sub/in")] == ["x\n", "y\n", "shared"]
    assert (work / "link").readlink() == Path("over")
    assert sorted(p.name for p in keep.iterdir()) == ["kept", "sub"]


def test_a_result_that_cannot_come_back_is_an_error(tmp_path: Path) -> None:
    work, keep = tmp_path / "work", tmp_path / "local" / "tracehint-1"
    work.mkdir()
    keep.mkdir(parents=True)
    (work / "taken").mkdir()
    (work / "taken" / "x").write_text("x")
    env = {"PATH": os.environ["PATH"], "TRACEHINT_RUN": "1"}
    line = "rm taken; echo new > taken"
    words = ["sh", SCRIPT, "run", tmp_path / "local", line, "a"]
    done = subprocess.run(words, cwd=work, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "could not be copied back" in done.stderr
    assert (work / "taken" / "x").read_text() == "x"


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with cluster(("node1", "node2"), scratch=True) as started:
        yield started


@pytest.mark.slow
@pytest.mark.engine
def test_each_node_reads_its_own_copy(slurm: Cluster, tmp_path: Path) -> None:
    local = slurm.folder / "local"
    _emit(tmp_path, local)
    slurm.run("sh", "jobs.sh", "--comment=ours", cwd=tmp_path)
    slurm.wait()
    db = tmp_path / "ref" / "db.bin"
    sums = subprocess.run(["cksum"], stdin=db.open("rb"), capture_output=True, text=True).stdout
    for i in range(READERS):
        lines = (tmp_path / "out" / f"{i}.txt").read_text().splitlines()
        assert lines[0].startswith(f"{local}/tracehint-"), "made on this node, read on this node"
        assert lines[1].startswith(f"{local}/tracehint-") and lines[1].endswith("/ref/db.bin")
        assert lines[2] == f"node{i % 2 + 1}"
        assert lines[3] == sums.strip()
        assert lines[4:] == ["db.bin", "small"]
    assert (tmp_path / "away.txt").read_text().strip() == str(db), "runs in place"
    left = [p for name in ("node1", "node2") for p in (slurm.folder / f"local-{name}").iterdir()]
    assert left == [], "the last job removed every copy"
