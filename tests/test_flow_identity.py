"""Which names and inodes are the same file, and which files succeed each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.flow_cut import Case, manifest_mounts
from tests.support.hostile import HOSTILE_NAMES
from tracehint.schemas.manifest import RecordingHost


def born(case: Case, path: str | bytes, at: float, **more: Any) -> int:
    """Return a file created at that time."""
    file = case.run.file(path, existed=False, **more)
    case.run.rows["names"][-1]["t_ns"] += round(at * 1e9)
    return file


def gone(case: Case, file: int) -> None:
    next(r for r in case.run.rows["files"] if r["file"] == file)["deleted"] = True


@pytest.mark.rule("F1")
def test_rename_moves_the_name_not_the_file(case: Case) -> None:
    """Written under a temporary name, published by rename."""
    a, b = case.chain("a", "b")
    f = born(case, "/data/out.tmp", 0.5)
    case.run.write(a, f, 0, 100, at=1)
    case.run.name(f, "rename", "/data/out.tmp", "/data/out", at=2, proc=a)
    case.run.read(b, f, 0, 100, at=3, path="/data/out")
    flow = case.flow()
    assert flow.edges == {("a", "out", 0, "b"): 100}
    assert flow.file("out")["other_paths"] == [b"out.tmp"]


@pytest.mark.rule("F2")
def test_one_temporary_name_used_again_and_again_is_no_lineage(case: Case) -> None:
    a, b = case.chain("a", "b")
    for i in range(3):
        f = born(case, "/data/tmp", i)
        case.run.write(a, f, 0, 10, at=i + 0.1)
        case.run.name(f, "rename", "/data/tmp", f"/data/out{i}", at=i + 0.2)
        case.run.read(b, f, 0, 10, at=i + 0.3)
    assert case.flow().edges == {("a", f"out{i}", 0, "b"): 10 for i in range(3)}


@pytest.mark.rule("F2", "F8")
def test_replaced_while_a_reader_holds_the_old_inode(case: Case) -> None:
    a, b, c, d = case.chain("a", "b", "c", "d")
    old = born(case, "/data/f", 0, deleted=True)
    case.run.write(a, old, 0, 100, at=1)
    new = born(case, "/data/f.new", 2)
    case.run.write(b, new, 0, 50, at=2)
    case.run.name(new, "rename", "/data/f.new", "/data/f", at=3, proc=b)
    case.run.read(c, old, 0, 100, at=4)
    case.run.read(d, new, 0, 50, at=4)
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "c"): 100, ("b", "f", 1, "d"): 50}
    assert flow.file("f", 0)["lineage"] == flow.file("f", 1)["lineage"]
    assert flow.roles == {("f", 0): "intermediate", ("f", 1): "intermediate"}


@pytest.mark.rule("F14")
def test_unread_replaced_file_is_superseded(case: Case) -> None:
    first, second, c = case.chain("first", "second", "c")
    old = born(case, "/data/f", 0, deleted=True)
    case.run.write(first, old, 0, 100, at=1)
    new = born(case, "/data/f", 2, ino=10_000 + old)  # reuses the inode number
    case.run.name(old, "unlink", "/data/f", at=1.9)
    case.run.write(second, new, 0, 100, at=2)
    case.run.read(c, new, 0, 100, at=3)
    flow = case.flow()
    assert flow.edges == {("second", "f", 1, "c"): 100}
    assert flow.producers["f", 0]["first"]["superseded"]
    assert flow.roles == {("f", 0): "scratch", ("f", 1): "intermediate"}


@pytest.mark.rule("F2")
def test_log_rotation_keeps_lineages_apart(case: Case) -> None:
    a, b = case.chain("a", "b")
    old = born(case, "/data/log", 0)
    case.run.write(a, old, 0, 10, at=1)
    case.run.name(old, "rename", "/data/log", "/data/log.1", at=2)
    new = born(case, "/data/log", 3)
    case.run.write(a, new, 0, 20, at=4)
    case.run.read(b, new, 0, 20, at=5)
    flow = case.flow()
    assert flow.edges == {("a", "log", 0, "b"): 20}
    assert flow.roles == {("log.1", 0): "output", ("log", 0): "intermediate"}


@pytest.mark.rule("F1")
def test_deleted_files_keep_their_last_name(case: Case) -> None:
    (a,) = case.chain("a")
    f = born(case, "/data/x", 0)
    case.run.write(a, f, 0, 10, at=1)
    case.run.name(f, "rename", "/data/x", "/data/y", at=2)
    case.run.name(f, "unlink", "/data/y", at=3)
    flow = case.flow()
    assert flow.roles == {("y", 0): "scratch"}
    assert flow.file("y")["deleted"] and flow.file("y")["other_paths"] == [b"x"]


@pytest.mark.rule("F1")
def test_hard_links_are_one_file(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = born(case, "/data/f", 0)
    case.run.write(a, f, 0, 10, at=1)
    case.run.name(f, "link", "/data/f", "/data/sandbox/f", at=2)
    case.run.read(b, f, 0, 10, at=3, path="/data/sandbox/f")
    case.run.name(f, "unlink", "/data/sandbox/f", at=4)
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "b"): 10}
    assert flow.file("f")["other_paths"] == [b"sandbox/f"]
    assert not flow.file("f")["deleted"]


@pytest.mark.rule("F1")
def test_directory_renames_move_what_is_below(case: Case) -> None:
    a, b = case.chain("a", "b")
    folder = case.run.file("/data/tmp", existed=False, kind="dir")
    case.run.rows["names"][-1]["op"] = "mkdir"
    f = born(case, "/data/tmp/x", 1)
    g = born(case, "/data/tmp-other/x", 1)
    early = born(case, "/data/tmp/early", 1)
    for file in (f, g, early):
        case.run.write(a, file, 0, 10, at=1)
    case.run.name(early, "rename", "/data/tmp/early", "/data/early", at=1.5)
    case.run.name(folder, "rename", "/data/tmp", "/data/step", at=2)
    case.run.name(folder, "rename", "/data/step", "/data/done", at=3)
    late = born(case, "/data/tmp/x", 4)  # a new directory with the old name
    case.run.write(b, late, 0, 10, at=4)
    flow = case.flow()
    assert {p for p, _ in flow.roles} == {"done/x", "tmp-other/x", "early", "tmp/x"}
    assert flow.file("done/x")["other_paths"] == [b"tmp/x", b"step/x"]
    assert all(v == 0 for _, v in flow.roles)


@pytest.mark.rule("F1")
def test_exchange_swaps_names(case: Case) -> None:
    a, b = case.chain("a", "b")
    f, g = born(case, "/data/f", 0), born(case, "/data/g", 0)
    case.run.write(a, f, 0, 10, at=1)
    case.run.write(b, g, 0, 20, at=1)
    case.run.name(f, "exchange", "/data/f", "/data/g", at=2)
    flow = case.flow()
    assert {p[0]: set(v) for p, v in flow.producers.items()} == {"g": {"a"}, "f": {"b"}}


@pytest.mark.rule("F2", "F8")
def test_rewriting_by_unlink_and_create_counts_versions_of_the_path(case: Case) -> None:
    tasks = case.chain("a", "b", "c")
    reader = case.task("r")
    old = None
    for i, task in enumerate(tasks):
        if old is not None:
            case.run.name(old, "unlink", "/data/f", at=10 * i - 1)
            gone(case, old)
        old = born(case, "/data/f", 10 * i)
        case.run.write(task, old, 0, 10, at=10 * i + 1)
        case.run.read(reader, old, 0, 10, at=10 * i + 2)
    assert case.flow().edges == {("abc"[i], "f", i, "r"): 10 for i in range(3)}


def two_hosts(case: Case, fstype: str, sources: tuple[str, str]) -> None:
    case.run.manifest.hosts.append(RecordingHost(name="node2"))
    manifest_mounts(case.run.manifest, fstype, sources[0])
    case.run.manifest.hosts[1].mounts[0]["source"] = sources[1]
    case.run.manifest.hosts[0].mounts[0]["path"] = "/data"


def on_host_2(case: Case, file: int, **more: Any) -> None:
    for table in ("files", "names"):
        for row in case.run.rows[table]:
            if row["file"] == file:
                row["host"] = "node2"
    next(r for r in case.run.rows["files"] if r["file"] == file).update(more)


@pytest.mark.parametrize("ino", [10_000, 77])
@pytest.mark.parametrize("fstype", ["nfs4", "lustre", "ceph", "fuse.sshfs"])
@pytest.mark.rule("F3")
def test_one_file_on_two_hosts(case: Case, fstype: str, ino: int) -> None:
    a, b = case.chain("a", "b")
    two_hosts(case, fstype, ("server:/x", "server:/x"))
    here = born(case, "/data/f.tmp", 0, ino=77)
    case.run.write(a, here, 0, 100, at=1)
    case.run.name(here, "rename", "/data/f.tmp", "/data/f", at=1.5)
    there = case.run.file("/data/f", existed=True)
    on_host_2(case, there, ino=ino)
    case.run.rows["names"][-1]["t_ns"] += round(2e9)
    case.run.read(b, there, 0, 60, at=2)
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "b"): 60}
    assert flow.file("f")["other_paths"] == [b"f.tmp"]


@pytest.mark.parametrize(
    ("fstype", "sources"), [("ext4", ("/dev/sda", "/dev/sda")), ("nfs4", ("one:/x", "two:/x"))]
)
@pytest.mark.rule("F3")
def test_same_path_on_two_hosts_is_two_files(
    case: Case, fstype: str, sources: tuple[str, str]
) -> None:
    a, b = case.chain("a", "b")
    two_hosts(case, fstype, sources)
    here, there = born(case, "/data/f", 0), born(case, "/data/f", 0)
    on_host_2(case, there)
    case.run.write(a, here, 0, 100, at=1)
    case.run.read(b, there, 0, 100, at=2)
    flow = case.flow()
    assert flow.edges == {}
    assert len(set(flow.flow.files.column("lineage").to_pylist())) == 2


@pytest.mark.rule("F3")
def test_different_mount_points_of_one_source(case: Case) -> None:
    a, b = case.chain("a", "b")
    two_hosts(case, "nfs4", ("server:/x", "server:/x"))
    case.run.manifest.hosts[1].mounts[0]["path"] = "/mnt/x"
    here, there = born(case, "/data/f", 0), case.run.file("/mnt/x/f", existed=True)
    on_host_2(case, there)
    case.run.write(a, here, 0, 100, at=1)
    case.run.read(b, there, 0, 100, at=2)
    flow = case.flow(roots=[b"/data", b"/mnt/x"])
    assert list(flow.edges.values()) == [100]


@pytest.mark.rule("F3")
def test_inodes_tell_replaced_files_of_two_hosts_apart(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    two_hosts(case, "nfs4", ("server:/x", "server:/x"))
    old, new = born(case, "/data/f", 0, ino=5, deleted=True), born(case, "/data/f", 3, ino=6)
    case.run.write(a, old, 0, 10, at=1)
    case.run.write(b, new, 0, 20, at=4)
    for ino, at in ((5, 2), (6, 5)):
        there = case.run.file("/data/f", existed=True)
        case.run.rows["names"][-1]["t_ns"] += round(at * 1e9)
        on_host_2(case, there, ino=ino)
        case.run.read(c, there, 0, 10, at=at)
    assert case.flow().edges == {("a", "f", 0, "c"): 10, ("b", "f", 1, "c"): 10}


@pytest.mark.rule("F16")
def test_a_skewed_clock_does_not_turn_an_edge_around(case: Case) -> None:
    a, b = case.chain("a", "b")
    two_hosts(case, "nfs4", ("server:/x", "server:/x"))
    here = born(case, "/data/f", 5)
    case.run.write(a, here, 0, 100, at=5, until=6)
    there = case.run.file("/data/f", existed=True)
    on_host_2(case, there)
    case.run.rows["files"][0]["existed"] = False
    case.run.read(b, there, 0, 100, at=4)
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "b"): 100}
    assert any("clock" in n for n in flow.flow.notes)


def test_hostile_names(case: Case) -> None:
    (a,) = case.chain("a")
    for name in HOSTILE_NAMES:
        f = born(case, b"/data/" + name, 1)
        case.run.write(a, f, 0, 10, at=1)
    rows = case.flow().flow.files.to_pylist()
    assert {r["path"] for r in rows} == set(HOSTILE_NAMES)
    assert len(rows) == len(set(HOSTILE_NAMES))
