"""Data roots in directories where few users run workflows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.answers import ENGINES, analyzed, answer
from tests.support.bundles import RunBuilder
from tracehint.analyzer.roots import classify_paths, data_roots
from tracehint.analyzer.tasks.describe import shorten


def software(roots: list[bytes], *paths: bytes) -> list[bool]:
    answer: list[bool] = classify_paths(pa.array(paths, pa.binary()), roots).to_pylist()
    return answer


def test_in_the_root_directory_the_system_is_no_data() -> None:
    paths = (
        b"/usr/lib/libc.so.6",
        b"/etc/ld.so.cache",
        b"/proc/1/stat",
        b"/a",
        b"/scratch/b",
        b"/dev/shm/c",
        b"/usrdata/d",
    )
    assert software([b"/"], *paths) == [True, True, True, False, False, False, False]


def test_a_root_inside_the_system_was_asked_for() -> None:
    assert software([b"/opt/data", b"/"], b"/opt/data/a", b"/opt/b") == [False, True]


def test_an_interpreter_in_a_home_directory_is_software() -> None:
    home = b"/home/u/"
    paths = [
        b".pyenv/versions/3.11.7/lib/libpython3.11.so",
        b"py/lib/python3.11/os.py",
        b".nvm/x",
        b"lib/python_results/x",
        b"lib/a.so",
        b"run/.pyenvx/a",
    ]
    found = software([b"/home/u"], *(home + p for p in paths))
    assert found == [True, True, True, False, False, False]


def test_a_tiny_file_that_one_task_hands_to_another_makes_a_root(tmp_path: Path) -> None:
    """It is not a directory probe, although it is deleted at the end."""
    run = RunBuilder(cwd="/proj")
    shell = run.process(["sh", "wf.sh"])
    a, b = (run.process([name], parent=shell) for name in "ab")
    handed = run.file("/var/tmp/x/flag", deleted=True)
    run.write(a, handed, 0, 5, at=1.0)
    run.read(b, handed, 0, 5, at=2.0)
    probe = run.file("/dev/shm/y/probe", deleted=True)
    run.write(a, probe, 0, 5, at=1.0)
    assert data_roots(run.bundle(tmp_path)) == [b"/var/tmp/x", b"/proj"]


def test_logs_that_do_not_say_where_the_run_was(tmp_path: Path) -> None:
    """Imported logs have no working directory: roots are where data were used, inputs included."""
    run = RunBuilder(cwd="")
    proc = run.process(["tool"])
    run.read(proc, run.file("/archive/u/in/a", existed=True), 0, 5, at=1.0)
    run.read(proc, run.file("/usr/lib/libm.so", existed=True), 0, 5, at=1.0)
    run.write(proc, run.file("/scratch/wf/x/b"), 0, 5, at=1.0)
    run.write(proc, run.file("/scratch/wf/y/c"), 0, 5, at=1.0)
    run.write(proc, run.file("/home/u/d"), 0, 5, at=1.0)
    bundle = run.bundle(tmp_path)
    bundle.manifest.cwd = ""
    assert sorted(data_roots(bundle)) == [b"/archive/u/in", b"/home/u", b"/scratch/wf"]
    empty = RunBuilder(cwd="").bundle(tmp_path / "empty")
    assert data_roots(empty) == [b"/"]


@pytest.mark.ebpf
@pytest.mark.slow
@pytest.mark.parametrize("collector", ENGINES)
def test_a_root_that_is_named_through_a_symbolic_link(tmp_path: Path, collector: str) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    script = f"cd {link}; seq 9 > a; cat {link}/a > b; cat {real}/b > c"
    found = answer(tmp_path, script, collector, roots=(link,))
    first, second = shorten(f"cat {link}/a"), shorten(f"cat {real}/b")  # depend on tmp_path
    assert found.edges == [(first, "b", second, 18), ("seq 9", "a", first, 18)]
    assert found.paths == ["a", "b", "c"]
    again = analyzed(tmp_path / "run.trace", "--data-root", str(link))
    assert again.edges == found.edges


def test_an_input_that_is_named_through_a_symbolic_link(tmp_path: Path) -> None:
    """The command names link/in, the kernel real/in."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    (real / "in").touch()
    link.symlink_to(real)
    run = RunBuilder(cwd="/proj")
    shell = run.process(["sh", "wf.sh", f"{link}/in", f"{link}/none"])
    run.read(shell, run.file(f"{real}/in", existed=True), 0, 5, at=1.0)
    assert data_roots(run.bundle(tmp_path / "b")) == [bytes(real), b"/proj"]
