"""Repeated `run` after changes: the directory's name, its permissions, free space, its files."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.cli import said as tracehint
from tests.support.hints import rule, save
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.project.state import read_state, roots_now
from tracehint.schemas.store import read_bundle

RUN = ("run", "--collector", "strace", "--", "sh", "wf.sh")
WORKFLOW = "mkdir -p out\nsort in >out/mid\nsort -r out/mid >out/last\n"


def project(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "wf.sh").write_text(WORKFLOW)
    (folder / "in").write_text("1\n" * 40_000)
    return folder


@pytest.mark.parametrize(
    ("was", "here", "root", "now"),
    [
        ("/a/wf", "/a/wf", "/a/wf", "/a/wf"), ("/a/wf", "/b/new", "/a/wf", "/b/new"),
        ("/a/wf", "/b/new", "/a/wf/out", "/b/new/out"),
        ("/a/p/wf", "/b/p/wf", "/a/data", "/b/data"),
        ("/a/p/wf", "/b/p/wf", "/tmp", "/tmp"), ("/a/wf", "/b/wf", "/abc", "/abc"),
        ("/wf", "/new", "/x", "/x"),
    ],
)  # fmt: skip  # a table
def test_data_goes_along_with_its_directory(was: str, here: str, root: str, now: str) -> None:
    assert roots_now([root], Path(was), Path(here)) == (now,)


@pytest.mark.slow
def test_a_renamed_project_keeps_its_hints(tmp_path: Path) -> None:
    tracehint(project(tmp_path / "before" / "wf"), *RUN)
    (tmp_path / "before" / "wf").rename(tmp_path / "before" / "other")
    said = tracehint(tmp_path / "before" / "other", *RUN)
    assert f"the last run was in {tmp_path}/before/wf: its hints now apply to files here" in said
    assert "hints set on 1 of 1 matching file" in said
    (tmp_path / "before").rename(tmp_path / "after")
    said = tracehint(tmp_path / "after" / "other", *RUN)
    assert "hints set on 1 of 1 matching file" in said
    assert "its hints now apply to files here" not in tracehint(tmp_path / "after" / "other", *RUN)


@pytest.mark.slow
def test_two_runs_at_once_in_one_project(tmp_path: Path) -> None:
    folder = project(tmp_path / "wf")
    # sequential commands: a file that both truncate and write could be empty for the second
    (folder / "wf.sh").write_text("exec 9>../turn\nflock 9\n" + WORKFLOW)
    tracehint(folder, *RUN)
    command = [*TRACEHINT, *RUN]
    both = [subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) for _ in range(2)]
    for run in both:
        said = run.communicate()[1].decode()
        assert run.returncode == 0, said
        assert "hints set on 1 of 1 matching file" in said
    runs = read_state(folder).runs
    assert sorted(run.number for run in runs) == [1, 2, 3]
    assert [run.in_force for run in runs] == [0, 1, 1]


@contextmanager
def mounted(folder: Path, *words: str | Path) -> Iterator[None]:
    if os.geteuid():
        pytest.skip("mounts are for root")
    if subprocess.run(["mount", *words, folder], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
def test_a_read_only_project_is_said_before_the_command_runs(tmp_path: Path) -> None:
    folder = project(tmp_path / "wf")
    (folder / "wf.sh").write_text(f"sort in >{shlex.quote(str(tmp_path))}/out\n")
    with mounted(folder, "--bind", folder):
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        said = tracehint(folder, *RUN, status=125)
        assert f"nothing can be stored in {folder}/.tracehint: Read-only file system" in said
        assert "--output BUNDLE" in said
        assert not (tmp_path / "out").exists()
        tracehint(folder, "run", "--output", tmp_path / "x.trace", *RUN[1:])
        assert (tmp_path / "out").exists()
        assert "no runs yet" in tracehint(folder, "status")


@pytest.mark.slow
@pytest.mark.ebpf
def test_a_journal_in_the_temporary_directory_is_no_data(tmp_path: Path) -> None:
    """As on a store whose files cannot be shared through memory: all tasks read and write it."""
    folder = project(tmp_path / "wf")
    (folder / ".tracehint").write_text("")  # prevents the directory
    hints = save(tmp_path, rule("out/mid", DP="local"))
    options = ["--hints", hints, "--store", "xattr", "-o", tmp_path / "x.trace"]
    said = tracehint(folder, "run", *options, "--collector", "ebpf", *RUN[3:])
    assert "hints set on 1 of 1 matching file" in said
    opened = read_bundle(tmp_path / "x.trace").tables["opens"].column("path").to_pylist()
    assert any(b"/table.journal." in path for path in opened), "it was recorded"
    found = json.loads(tracehint(folder, "analyze", tmp_path / "x.trace", "--format", "json"))
    assert found["run"]["data_roots"] == [str(folder)]
    assert [edge["via"] for edge in found["edges"]] == ["data"], "from sort to sort"


@pytest.mark.slow
def test_a_full_disk_is_said_and_the_next_run_has_hints(tmp_path: Path) -> None:
    folder = tmp_path / "wf"
    folder.mkdir()
    with mounted(folder, "-t", "tmpfs", "-o", "size=4m", "none"):
        (folder / "wf.sh").write_text(WORKFLOW)
        (folder / "in").write_text("1\n" * 40_000)
        tracehint(folder, *RUN)
        with (folder / "fill").open("wb", 0) as fill:
            while fill.tell() < os.fstatvfs(fill.fileno()).f_blocks << 12:
                try:
                    fill.write(bytes(4096))
                except OSError:
                    break
        said = tracehint(folder, *RUN, status=125)
        assert f"{folder}/.tracehint" in said
        assert "No space left on device" in said
        (folder / "fill").unlink()
        assert "hints set on 1 of 1 matching file" in tracehint(folder, *RUN)


@pytest.mark.slow
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.full)])
def test_names_of_every_byte_twice(tmp_path: Path, step: int) -> None:
    """Each name is a file that one program makes and another one reads."""
    names = [name for name in HOSTILE_NAMES[::step] if name != b".tracehint"]
    (tmp_path / "names").write_bytes(b"\0".join(names))
    (tmp_path / "wf.sh").write_text(
        "mkdir -p out && cd out || exit 1\n"
        "xargs -0 -I@ sh -c 'head -c 70000 /dev/zero >\"$0\"' @ <../names\n"
        "xargs -0 -I@ sh -c 'cksum <\"$0\"' @ <../names >../sums\n"
    )
    tracehint(tmp_path, *RUN)
    said = tracehint(tmp_path, *RUN)
    rows = read_bundle(tmp_path / ".tracehint/runs/0002.trace").tables["settings"].to_pylist()
    hinted = {os.path.basename(row["path"]) for row in rows if row["state"] == "set"}  # noqa: PTH119
    assert hinted == {name.split(b"/")[-1] for name in names}, said
    compared = tracehint(tmp_path, "compare", *sorted((tmp_path / ".tracehint/runs").iterdir()))
    assert "\x1b" not in said + compared + tracehint(tmp_path, "status")
