"""`merge`: identifiers, hosts, losses, clocks, and bad bundles among good ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder, ns
from tests.support.cli import inside
from tracehint.collectors import join
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.store import Bundle, read_bundle

SHARED = [
    {"path": "/shared", "fstype": "nfs4", "source": "server:/x"},
    {"path": "/", "fstype": "ext4", "source": "/dev/sda"},
]


def node(name: str, mounts: list[dict[str, Any]] = SHARED, **more: Any) -> RunBuilder:
    run = RunBuilder(host=name, **more)
    run.manifest.hosts = [RecordingHost(name=name, mounts=list(mounts))]
    return run


def merge(folder: Path, *runs: RunBuilder, options: tuple[str, ...] = ()) -> tuple[Bundle, str]:
    paths = [run.save(folder / f"b{i}.trace") for i, run in enumerate(runs)]
    done = inside("merge", *options, *(p.name for p in paths), "-o", "all.trace", cwd=folder)
    assert done.returncode == 0, done.stderr
    return read_bundle(folder / "all.trace"), done.stderr


def rows(bundle: Bundle, table: str, **match: Any) -> list[dict[str, Any]]:
    found = bundle.tables[table].to_pylist()
    return [r for r in found if all(r[k] == v for k, v in match.items())]


def producer(name: str, path: str, at: float) -> RunBuilder:
    run = node(name)
    file = run.file(path, existed=False)
    run.write(run.process(["make"], start=at), file, 0, 100, at=at)
    run.rows["opens"][-1]["created"] = True
    run.rows["names"][-1]["t_ns"] = ns(at)
    return run


def consumer(name: str, path: str, at: float, mounts: list[dict[str, Any]] = SHARED) -> RunBuilder:
    run = node(name, mounts)
    run.read(run.process(["use"], start=at), run.file(path, existed=True), 0, 100, at=at)
    return run


def test_identifiers_stay_apart_and_hosts_are_kept(tmp_path: Path) -> None:
    runs = [producer("n1", "/shared/f", 1.0), consumer("n2", "/shared/f", 5.0)]
    runs[0].loss("extent_records", 7, proc=runs[0].rows["processes"][0]["proc"])
    bundle, _ = merge(tmp_path, *runs)
    assert [h.name for h in bundle.manifest.hosts] == ["n1", "n2"]
    processes = rows(bundle, "processes")
    assert len({r["proc"] for r in processes}) == 2
    by_host = {r["host"]: r["proc"] for r in processes}
    for table in ("opens", "extents"):
        assert {(r["host"], r["proc"]) for r in rows(bundle, table)} == set(by_host.items())
    files = {r["file"] for r in rows(bundle, "files")}
    assert {r["file"] for r in rows(bundle, "extents")} == files
    assert [(r["kind"], r["count"], r["proc"]) for r in rows(bundle, "losses")] == [
        ("extent_records", 7, by_host["n1"])
    ]


def test_parents_and_epochs_follow(tmp_path: Path) -> None:
    def tree(name: str) -> RunBuilder:
        run = node(name)
        top = run.process(["sh"])
        fork = run.process([], parent=top)
        run.process(["cat"], parent=top, prev=fork)
        return run

    bundle, _ = merge(tmp_path, tree("n1"), tree("n2"), tree("n3"))
    processes = {r["proc"]: r for r in rows(bundle, "processes")}
    assert len(processes) == 9
    for row in processes.values():
        for link in ("parent", "prev"):
            if row[link] is not None:
                assert processes[row[link]]["host"] == row["host"]


def test_several_bundles_of_one_host_share_its_files(tmp_path: Path) -> None:
    first, second, third = node("n1"), node("n1"), node("n1")
    a = first.file("/d/a", existed=False, ino=77)
    first.write(first.process(["w"]), a, 0, 10, at=1.0)
    b = second.file("/d/a", existed=True, ino=77)
    second.read(second.process(["r"]), b, 0, 10, at=2.0)
    c = third.file("/d/other", existed=True, ino=78)
    third.read(third.process(["r"]), c, 0, 10, at=3.0)
    bundle, _ = merge(tmp_path, first, second, third)
    assert len(rows(bundle, "files")) == 2
    (joined,) = rows(bundle, "files", ino=77)
    assert joined["existed"] is False  # as recorded in the first bundle
    assert len(rows(bundle, "extents", file=joined["file"])) == 2


def test_a_reused_inode_is_another_file(tmp_path: Path) -> None:
    first, second = node("n1"), node("n1")
    old = first.file("/d/a", existed=False, ino=77, deleted=True)
    first.write(first.process(["w"]), old, 0, 10, at=1.0)
    first.name(old, "unlink", "/d/a", at=2.0)
    new = second.file("/d/b", existed=False, ino=77)
    second.rows["names"][-1]["t_ns"] = ns(50.0)
    second.write(second.process(["w"]), new, 0, 10, at=51.0)
    bundle, _ = merge(tmp_path, first, second)
    assert len(rows(bundle, "files", ino=77)) == 2


def test_clocks_are_aligned_only_where_causality_demands_it(tmp_path: Path) -> None:
    bundle, said = merge(
        tmp_path, producer("n1", "/shared/f", 10.0), consumer("n2", "/shared/f", 4.0)
    )
    (read,) = rows(bundle, "extents", op="read")
    (written,) = rows(bundle, "extents", op="write")
    assert read["first_ns"] >= written["first_ns"]
    assert read["first_ns"] == ns(10.0)  # shifted no further than needed
    note = next(n for n in bundle.manifest.notes if "Clocks" in n)
    assert "n2 by 6.000000 s" in note
    assert "n2 by 6.000000 s" in said


def test_clocks_that_agree_are_left_alone(tmp_path: Path) -> None:
    bundle, _ = merge(tmp_path, producer("n1", "/shared/f", 1.0), consumer("n2", "/shared/f", 4.0))
    assert rows(bundle, "extents", op="read")[0]["first_ns"] == ns(4.0)
    assert not any("Clocks" in n for n in bundle.manifest.notes)


def test_clocks_may_be_kept(tmp_path: Path) -> None:
    bundle, _ = merge(
        tmp_path,
        producer("n1", "/shared/f", 10.0),
        consumer("n2", "/shared/f", 4.0),
        options=("--keep-clocks",),
    )
    assert rows(bundle, "extents", op="read")[0]["first_ns"] == ns(4.0)


def test_equal_local_paths_say_nothing_about_clocks(tmp_path: Path) -> None:
    bundle, _ = merge(tmp_path, producer("n1", "/tmp/f", 10.0), consumer("n2", "/tmp/f", 4.0))
    assert rows(bundle, "extents", op="read")[0]["first_ns"] == ns(4.0)


def test_the_store_may_be_mounted_elsewhere(tmp_path: Path) -> None:
    mounts = [{"path": "/mnt/a", "fstype": "nfs4", "source": "server:/x"}]
    bundle, _ = merge(
        tmp_path, producer("n1", "/shared/d/f", 10.0), consumer("n2", "/mnt/a/d/f", 4.0, mounts)
    )
    assert rows(bundle, "extents", op="read")[0]["first_ns"] == ns(10.0)


def test_clocks_of_a_chain_of_hosts(tmp_path: Path) -> None:
    second = consumer("n2", "/shared/f", 4.0)
    out = second.file("/shared/g", existed=False)
    second.write(second.process(["make"]), out, 0, 10, at=5.0)
    second.rows["opens"][-1]["created"] = True
    third = consumer("n3", "/shared/g", 1.0)
    bundle, _ = merge(tmp_path, producer("n1", "/shared/f", 10.0), second, third)
    times = {r["host"]: r["first_ns"] for r in rows(bundle, "extents", op="read")}
    assert times == {"n2": ns(10.0), "n3": ns(11.0)}


def test_times_that_contradict_each_other_are_not_moved(tmp_path: Path) -> None:
    first = producer("n1", "/shared/f", 10.0)
    back = first.file("/shared/g", existed=True)
    first.read(first.process(["use"]), back, 0, 10, at=11.0)
    second = consumer("n2", "/shared/f", 4.0)
    made = second.file("/shared/g", existed=False)
    second.write(second.process(["make"]), made, 0, 10, at=30.0)
    second.rows["opens"][-1]["created"] = True
    bundle, _ = merge(tmp_path, first, second)
    assert rows(bundle, "extents", op="read", host="n2")[0]["first_ns"] == ns(4.0)


def test_manifests_are_joined(tmp_path: Path) -> None:
    one, two = node("n1", collector="ebpf"), node("n2", collector="strace")
    for run, status in ((one, 0), (two, 5)):
        run.process(["x"])
        run.manifest.exit_status = status
        run.manifest.blind_to = [f"blind-{run.host}", "io_uring"]
    two.manifest.complete = False
    manifest = merge(tmp_path, one, two)[0].manifest
    assert manifest.collector == "ebpf,strace"
    assert manifest.exit_status == 5
    assert not manifest.complete
    assert manifest.blind_to == ["blind-n1", "io_uring", "blind-n2"]


def test_bad_bundles_are_named_and_left_out(tmp_path: Path) -> None:
    producer("n1", "/shared/f", 1.0).save(tmp_path / "good.trace")
    newer = producer("n2", "/shared/f", 1.0).save(tmp_path / "newer.trace")
    data = json.loads((newer / "manifest.json").read_text())
    (newer / "manifest.json").write_text(json.dumps({**data, "format": "tracehint.bundle/99"}))
    (tmp_path / "empty").mkdir()
    done = inside(
        "merge", "good.trace", "newer.trace", "empty", "missing", "-o", "all.trace", cwd=tmp_path
    )
    assert done.returncode == 0
    for name in ("newer.trace", "empty", "missing"):
        assert name in done.stderr
    lost = rows(read_bundle(tmp_path / "all.trace"), "losses")
    assert {r["kind"] for r in lost} == {"unreadable_log"}
    nothing = inside("merge", "empty", "-o", "none.trace", cwd=tmp_path)
    assert nothing.returncode == 2 and "Traceback" not in nothing.stderr


KILLED = """\
7 1700000000.000000100 execve("/bin/sh", ["sh", "-c", "work"], ["SLURM_JOB_ID=9"]) = 0
7 1700000000.100000000 openat(AT_FDCWD</shared>, "part", O_WRONLY|O_CREAT, 0666) = 3</shared/part>
7 1700000000.200000000 write(0x3, 0x7ffc, 0x64) = 0x64
"""


def test_log_of_a_killed_recorder_is_read(tmp_path: Path) -> None:
    killed = node("n1")
    killed.manifest.complete = False
    killed.manifest.cwd = "/shared"
    killed.save(tmp_path / "killed.trace")
    (tmp_path / "killed.trace" / "raw").mkdir()
    (tmp_path / "killed.trace" / "raw" / "strace.log").write_text(KILLED)
    useless = node("n3").save(tmp_path / "useless.trace")
    (useless / "raw").mkdir()
    (useless / "raw" / "strace.log").write_text("not a log\n")
    consumer("n2", "/shared/part", 1_700_000_005.0).save(tmp_path / "whole.trace")
    done = inside(
        "merge", "killed.trace", "useless.trace", "whole.trace", "-o", "all.trace", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "left out" in done.stderr and "useless.trace" in done.stderr
    assert "incomplete: killed.trace: its recorder was killed or is still running" in done.stderr
    assert "whole.trace" not in done.stderr
    bundle = read_bundle(tmp_path / "all.trace")
    assert not bundle.manifest.complete
    assert any("killed.trace was killed" in note for note in bundle.manifest.notes)
    assert {h.name for h in bundle.manifest.hosts} == {"n1", "n2"}
    (row,) = rows(bundle, "extents", op="write")
    assert (row["start"], row["length"]) == (0, 100)
    assert not (tmp_path / "killed.trace" / "extents").exists()  # the source is unchanged


def test_many_bundles_that_are_not_whole_are_said_in_one_line(tmp_path: Path) -> None:
    names = [f"n{number:02d}" for number in range(12)]
    for name in names:
        part = producer(name, f"/shared/{name}", 1.0)
        part.manifest.complete = False
        part.save(tmp_path / f"{name}.trace")
        (tmp_path / f"{name}.bad").mkdir()
    bad = [f"{name}.{kind}" for kind in ("bad", "gone") for name in names]
    traces = [f"{name}.trace" for name in names]
    done = inside("merge", *traces, *bad, "-o", "all.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "incomplete: " in line)
    assert "12 of 12 bundles (n00.trace, n01.trace, n02.trace and 9 more)" in line
    assert done.stderr.count("left out") == 21 and "left out: and 4 more" in done.stderr
    assert sum("not read" in n for n in read_bundle(tmp_path / "all.trace").manifest.notes) == 24


def test_workflow_is_declared_in_the_merged_run(tmp_path: Path) -> None:
    (tmp_path / "w.mf").write_text("/shared/f:\n\tmake\n/shared/g: /shared/f\n\tuse\n")
    runs = [producer("n1", "/shared/f", 1.0), consumer("n2", "/shared/f", 5.0)]
    bundle, _ = merge(tmp_path, *runs, options=("--workflow", "w.mf"))
    assert [r["command"] for r in rows(bundle, "declared_tasks")] == [b"make", b"use"]
    assert len(rows(bundle, "declared_io")) == 3
    paths = [run.save(tmp_path / f"again{i}.trace").name for i, run in enumerate(runs)]
    done = inside("merge", *paths, "-o", "no.trace", "--workflow", "gone.mf", cwd=tmp_path)
    assert done.returncode == 2 and "gone.mf" in done.stderr
    assert not (tmp_path / "no.trace").exists()


def test_the_work_for_each_bundle_does_not_grow_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bundle's folder is resolved once, not once per host."""
    runs = [producer(f"n{i}", f"/shared/f{i}", 1.0) for i in range(12)]
    asked: list[Path] = []
    absolute = Path.absolute

    def counted(path: Path) -> Path:
        asked.append(path)
        return absolute(path)

    monkeypatch.setattr(Path, "absolute", counted)
    merge(tmp_path, *runs)
    assert sum(path.name == "b3.trace" for path in asked) <= 3


def rows_wait_in_files(monkeypatch: pytest.MonkeyPatch, memory: int) -> list[Path]:
    """Record the folders of bundles that exceed this memory budget, in the order of writing."""
    waited: list[Path] = []

    def set_aside(bundle: Bundle, folder: Path) -> join.BundlePart:
        waited.append(folder)
        return aside(bundle, folder)

    aside = join.set_aside
    monkeypatch.setattr(join, "set_aside", set_aside)
    monkeypatch.setattr("tracehint.app.merging._MEMORY_BUDGET", memory)
    return waited


@pytest.mark.slow
def test_what_is_written_part_by_part_is_what_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host then has one file per bundle, and more than ten files keep their order."""
    made = [producer("n1", f"/shared/x{i}", 9.0 + i) for i in range(12)]
    read = [consumer("n2", f"/shared/x{i}", 5.0 + i) for i in range(12)]
    runs = [run for pair in zip(made, read, strict=True) for run in pair]
    for folder in ("one", "many"):
        (tmp_path / folder).mkdir()
    at_once, _ = merge(tmp_path / "one", *runs)
    monkeypatch.setattr("tracehint.collectors.join.BATCH_BYTES", 1)
    waited = rows_wait_in_files(monkeypatch, memory=10_000)
    in_parts, said = merge(tmp_path / "many", *runs)
    assert 0 < len(waited) < len(runs)
    assert "Clocks were aligned" in said
    assert len(list((tmp_path / "many/all.trace/opens/host=n1").iterdir())) == 12
    assert in_parts.manifest.rows == at_once.manifest.rows
    for name, table in at_once.tables.items():
        assert in_parts.tables[name].to_pylist() == table.to_pylist(), name


def test_a_directory_stands_for_its_bundles(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for name in ("b", "a"):
        producer(name, f"/shared/{name}", 1).save(folder / f"{name}.trace")
    (folder / "notes.txt").write_text("not a bundle")
    (folder / "empty").mkdir()
    words = (["traces"], ["traces/a.trace", "traces/b.trace"])
    for number, named in enumerate(words):
        done = inside("merge", *named, "-o", f"{number}.trace", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"2 bundles of 2 hosts in {number}.trace" in done.stderr
    one, other = (read_bundle(tmp_path / f"{n}.trace").tables for n in (0, 1))
    assert one == other
    refused = inside("analyze", "traces", cwd=tmp_path)
    assert refused.returncode == 2
    assert "tracehint merge traces -o NEW.trace" in refused.stderr


def test_a_directory_without_bundles_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = inside("merge", "empty", "-o", "new.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert "empty: not a trace bundle" in done.stderr


AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from tracehint.schemas.manifest import Manifest, manifest_to_json, parse_manifest
sys.setswitchinterval(1e-6)
text = manifest_to_json(Manifest()).encode()
with ThreadPoolExecutor(4) as pool:
    for _ in range(100):  # each time as the first time in a process
        vars(Manifest).get("__msgspec_cache__") and delattr(Manifest, "__msgspec_cache__")
        list(pool.map(lambda _: parse_manifest(text, "m"), range(4)))
"""


def test_manifests_are_read_by_several_threads_at_once() -> None:
    """Runs in a subprocess: a failure would crash the interpreter."""
    assert subprocess.run([sys.executable, "-c", AT_ONCE], check=False).returncode == 0
