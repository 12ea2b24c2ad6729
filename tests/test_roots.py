"""Data roots: which directories are chosen, what is software, how paths become relative."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder
from tracehint.analyzer.path_rules import is_system
from tracehint.analyzer.roots import classify_paths, data_roots, relative_paths
from tracehint.analyzer.tasks.segmentation import segment_tasks


def roots_of(tmp_path: Path, *written: str, cwd: str = "/proj/run", **more: object) -> list[bytes]:
    run = RunBuilder(cwd=cwd)
    proc = run.process(["sh", *more.pop("arguments", ())])  # type: ignore[misc]
    for path in written:
        run.write(proc, run.file(path), 0, 5, at=1.0)
    for path in more.pop("read", ()):  # type: ignore[attr-defined]
        run.read(proc, run.file(path, existed=True), 0, 5, at=1.0)
    return data_roots(run.bundle(tmp_path), **more)  # type: ignore[arg-type]


def test_the_working_directory_alone(tmp_path: Path) -> None:
    assert roots_of(tmp_path, "/proj/run/a", "/proj/run/sub/b") == [b"/proj/run"]


@pytest.mark.parametrize(
    ("written", "roots"),
    [
        (["/scratch/u/x/a"], [b"/scratch/u/x", b"/proj/run"]),
        # folders with a common parent become that parent ...
        (["/scratch/u/x/a", "/scratch/u/y/b"], [b"/scratch/u", b"/proj/run"]),
        # ... but neither a top-level directory shared with others nor /tmp
        (["/scratch/x/a", "/scratch/y/b"], [b"/scratch/x", b"/scratch/y", b"/proj/run"]),
        (["/tmp/x/a", "/tmp/y/b"], [b"/proj/run", b"/tmp/x", b"/tmp/y"]),
        (["/tmp/a"], [b"/proj/run", b"/tmp"]),
        (["/dev/shm/g/a", "/var/tmp/q/b"], [b"/dev/shm/g", b"/var/tmp/q", b"/proj/run"]),
        (["/usr/lib/a", "/var/log/b", "/dev/null", "/proc/1/x", "/opt/x/a"], [b"/proj/run"]),
        # neither a whole home directory nor its hidden files
        (["/home/u/a", "/home/u/.cache/x/b", "/root/.config/c", "/z"], [b"/proj/run"]),
        (["/home/u/data/a", "/home/u/out/b"], [b"/home/u/data", b"/home/u/out", b"/proj/run"]),
        (["/proj/a", "/proj/run/b"], [b"/proj/run", b"/proj"]),
    ],
)
def test_where_the_run_wrote(tmp_path: Path, written: list[str], roots: list[bytes]) -> None:
    assert sorted(roots_of(tmp_path, *written)) == sorted(roots)


def test_many_folders_are_bounded(tmp_path: Path) -> None:
    folders = [f"/scratch/job{i}/x/out" for i in range(100)]
    assert roots_of(tmp_path, *folders) == [b"/proj/run", b"/scratch"]


def test_file_arguments_of_the_command(tmp_path: Path) -> None:
    found = roots_of(
        tmp_path,
        arguments=("/data/in/x.fits", "--list=/refs/y", "-o", "/nowhere/z", "/usr/share/w", "rel"),
        read=("/data/in/x.fits", "/refs/y", "/usr/share/w"),
    )
    assert sorted(found) == [b"/data/in", b"/proj/run", b"/refs"]


def test_a_home_directory_is_a_root_only_as_the_working_directory(tmp_path: Path) -> None:
    assert roots_of(tmp_path, "/home/u/x/a", cwd="/home/u") == [b"/home/u"]


def test_given_roots_win(tmp_path: Path) -> None:
    assert roots_of(tmp_path, "/else/a", given=["/d/../data/", "rel"]) == [
        b"/proj/run/rel",
        b"/data",
    ]


def test_what_only_engine_processes_touch_makes_no_root(tmp_path: Path) -> None:
    run = RunBuilder(cwd="/proj/run")
    engine = run.process(["makeflow", "wf.mf"])
    job = run.process(["sh", "-c", "sort a"], parent=engine)
    run.write(engine, run.file("/tmp/session/x"), 0, 5, at=1.0)
    shared = run.file("/scratch/u/list")
    run.write(engine, shared, 0, 5, at=1.0)
    run.read(job, shared, 0, 5, at=2.0)
    bundle = run.bundle(tmp_path)
    assert sorted(data_roots(bundle, (), segment_tasks(bundle))) == [b"/proj/run", b"/scratch/u"]


SOFTWARE = [
    "/usr/lib/libc.so", "/other/x", "/d/env/lib/python3.11/site-packages/numpy/x.py",
    "/d/a/__pycache__/x.pyc", "/d/node_modules/x", "/d/.git/objects/ab/c", "/d/image.sif",
    "/d/.snakemake/conda/ab/bin/x", "/d/.snakemake/metadata/xyz", "/d/.nextflow/cache/x",
    "/d/.nextflow.log", "/d/work/ab/cd/.command.run", "/d/wf.mf.makeflowlog",
    "/d/makeflow.failed.3/x", "/d/venv/bin/python", "/d/conda/lib/x.so", "/d/work/conda/x/y",
]  # fmt: skip  # a table
DATA = [
    "/d", "/d/a.fits", "/d/.hidden", "/d/usr/lib/x", "/d/.snakemake/storage/x",
    "/d/.snakemake/shadow/x", "/d/work/ab/cd/out.bam", "/d/git/x", "/d/sub/my.so", "/d/cache/x",
]  # fmt: skip  # a table


def test_software_below_a_root() -> None:
    markers = ["/d/venv/pyvenv.cfg", "/d/conda/conda-meta/history"]
    paths = pa.array([p.encode() for p in [*SOFTWARE, *DATA, *markers]], pa.binary())
    answer = classify_paths(paths, [b"/d"]).to_pylist()
    expected = [True] * len(SOFTWARE) + [False] * len(DATA) + [True, True]
    assert [p for p, a, e in zip(paths.to_pylist(), answer, expected, strict=True) if a != e] == []


def test_a_root_inside_an_environment_was_asked_for() -> None:
    paths = pa.array([b"/v/pyvenv.cfg", b"/v/data/x"], pa.binary())
    assert classify_paths(paths, [b"/v/data"]).to_pylist() == [True, False]


def test_bookkeeping() -> None:
    paths = pa.array(
        [b"/d/.snakemake/log/x", b"/d/a.fits", b"/d/work/ab/cd/.exitcode"], pa.binary()
    )
    assert classify_paths(paths, [b"/d"]).to_pylist() == [True, False, True]


def test_relative_paths_are_unambiguous() -> None:
    paths = pa.array([b"/a/x", b"/b/x", b"/b/y", b"/a", b"/c/z", b"/a/b/x"], pa.binary())
    assert relative_paths(paths, [b"/a/b", b"/a", b"/b"]).to_pylist() == [
        b"/a/x",
        b"/b/x",
        b"y",
        b".",
        b"/c/z",
        b"x",
    ]
    assert relative_paths(paths[:4], [b"/a"]).to_pylist() == [b"x", b"/b/x", b"/b/y", b"."]


def test_what_mpi_keeps_for_itself_is_no_data() -> None:
    own = [
        "/tmp/ompi.node1.0/pid.17/1/a.sm", "/scratch/u/ompi.node1.1000/pid.17/x",
        "/dev/shm/vader_segment.node1.0.7c.1", "/dev/shm/sem.OMPIO_out.bin",
        "/tmp/x/pmix_dstor_ds21_17/lock",
    ]  # fmt: skip  # a table
    data = ["/dev/shm/out.bin", "/tmp/ompi.txt", "/dev/shm/run/sem.dat", "/d/ompi.old.1/x"]
    paths = pa.array([p.encode() for p in [*own, *data]], pa.binary())
    roots = [b"/tmp", b"/dev/shm", b"/d", b"/scratch"]
    expected = [True] * len(own) + [False] * len(data)
    assert classify_paths(paths, roots).to_pylist() == expected
    assert is_system(paths).tolist() == expected


def test_system_prefixes_are_whole_names() -> None:
    paths = pa.array([b"/usr/x", b"/usrdata/x", b"/dev/shm/x", b"/dev/sda", b""], pa.binary())
    assert is_system(paths).tolist() == [True, False, False, True, False]


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.lists(st.binary(max_size=12).map(lambda b: b"/" + b.replace(b"\0", b"/"))), st.data())
def test_any_names(names: list[bytes], data: st.DataObject) -> None:
    """Arbitrary bytes: no error, and relative names lead back to their path."""
    paths = pa.array(names, pa.binary())
    root = data.draw(st.sampled_from([b"/", b"/d", *names]))
    relative = relative_paths(paths, [root]).to_pylist()
    assert len(classify_paths(paths, [root])) == len(names)
    for path, name in zip(names, relative, strict=True):
        inside = path == root or path.startswith(root.rstrip(b"/") + b"/")
        back = root.rstrip(b"/") + b"/" + name if name != b"." else root
        assert back == path or name in (path, b".") if inside else name == path
