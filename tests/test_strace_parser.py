"""Handwritten strace logs with known results: offsets, descriptors, processes, names."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.straced import moved, parse, rows

RUN = '1 execve("/bin/p", ["p"], 0x7ff /* 3 vars */) = 0\n'


def test_sequential_reads_are_one_run() -> None:
    tables, _ = parse(
        RUN
        + '1 openat(AT_FDCWD, "f", O_RDONLY) = 3\n'
        + '1 read(3, "x"..., 1000) = 1000\n' * 7
        + '1 read(3, "", 1000) = 0\n1 close(3) = 0\n'
    )
    assert moved(tables, b"/w/f") == ["read 0+7000"]
    (row,) = rows(tables, "opens")
    assert (row["read_ops"], row["read_bytes"], row["seq_ops"]) == (7, 7000, 6)
    assert row["small_ops"] == 7
    assert row["close_ns"] > row["last_ns"] > row["open_ns"]
    assert rows(tables, "files")[0]["size_bytes"] == 7000  # a read reached the end


def test_strided_reads_are_one_row() -> None:
    tables, _ = parse(
        RUN
        + '1 open("f", O_RDONLY) = 3\n'
        + "".join(f'1 pread64(3, "x"..., 10, {100 * i + 5}) = 10\n' for i in range(11))
    )
    (run,) = rows(tables, "extents")
    assert (run["start"], run["length"], run["stride"], run["count"]) == (5, 10, 100, 11)
    assert (run["ops"], run["bytes"]) == (11, 110)


def test_positioned_calls_leave_the_offset_alone() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 write(3, "x"..., 10) = 10\n'
        '1 pwrite64(3, "x"..., 5, 100) = 5\n1 write(3, "x"..., 10) = 10\n'
        '1 preadv(3, [{iov_base="x", iov_len=2}], 1, 50) = 2\n1 read(3, "x", 1) = 1\n'
    )
    assert moved(tables, b"/w/f") == ["write 0+20", "write 100+5", "read 50+2", "read 20+1"]


@pytest.mark.parametrize(
    ("call", "start"),
    [
        ("pwritev2(0x3, 0x7f, 0x1, 0x40, 0, 0) = 0x6", 0x40),
        ("pwritev2(0x3, 0x7f, 0x1, 0xffffffffffffffff, 0, 0) = 0x6", 7),
        ("pwritev2(0x3, 0x7f, 0x1, 0x40, 0, 0x10) = 0x6", 7),  # RWF_APPEND
        ('pwritev2(3, [{iov_base="abcdef", iov_len=6}], 1, 64, 0) = 6', 64),
        ('pwritev2(3, [{iov_base="abcdef", iov_len=6}], 1, -1, RWF_SYNC) = 6', 7),
        ("pwritev(0x3, 0x7f, 0x1, 0x40, 0) = 0x6", 0x40),
        ("pwrite64(0x3, 0x7f, 0x6, 0x40) = 0x6", 0x40),
        ("write(0x3, 0x7f, 0x6) = 0x6", 7),
        ('writev(3</w/f>, [{iov_base="a, b", iov_len=6}], 1) = 6', 7),
    ],
)
def test_raw_and_decoded_positions(call: str, start: int) -> None:
    tables, stats = parse(
        RUN + '1 open("f", O_RDWR|O_CREAT|O_EXCL, 0666) = 3\n1 write(3, "x"..., 7) = 7\n1 ' + call
    )
    assert stats.bad == 0
    wanted = ["write 0+13"] if start == 7 else ["write 0+7", f"write {start}+6"]
    assert moved(tables, b"/w/f") == wanted


def test_lseek_and_append() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 lseek(3, 0, SEEK_END) = 500\n'
        '1 write(3, "x"..., 10) = 10\n1 open("f", O_WRONLY|O_APPEND) = 4\n'
        '1 write(4, "x"..., 5) = 5\n1 lseek(3, 20, SEEK_SET) = 20\n1 read(3, "x"..., 4) = 4\n'
    )
    assert moved(tables, b"/w/f") == ["write 500+10", "write 510+5", "read 20+4"]
    assert all(r["exact"] for r in rows(tables, "extents"))


def test_append_to_a_file_of_unknown_size_is_not_exact() -> None:
    tables, _ = parse(RUN + '1 open("f", O_WRONLY|O_APPEND) = 3\n1 write(3, "x"..., 5) = 5\n')
    assert [r["exact"] for r in rows(tables, "extents")] == [False]


def test_dup_and_fork_share_the_offset() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDONLY) = 3\n1 dup2(3, 0) = 0\n1 fcntl(3, F_DUPFD, 10) = 10\n'
        '1 read(3, "x"..., 10) = 10\n1 read(0, "x"..., 20) = 20\n'
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n"
        '2 read(10, "x"..., 30) = 30\n1 read(3, "x"..., 40) = 40\n'
    )
    assert moved(tables, b"/w/f") == ["read 0+30", "read 30+30", "read 60+40"]
    first, second = sorted(rows(tables, "opens"), key=lambda r: r["proc"])
    assert (first["read_bytes"], first["via"]) == (70, "open")
    assert (second["read_bytes"], second["via"]) == (30, "inherited")


def test_threads_share_descriptors_forks_do_not() -> None:
    tables, _ = parse(
        RUN + "1 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 2\n"
        '2 open("f", O_RDONLY) = 3\n1 read(3, "x"..., 10) = 10\n'
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 3\n3 close(3) = 0\n"
        '3 open("g", O_RDONLY) = 3\n3 read(3, "x"..., 5) = 5\n1 read(3, "x"..., 10) = 10\n'
        "2 +++ exited with 0 +++\n3 +++ exited with 4 +++\n1 +++ exited with 2 +++\n"
    )
    assert moved(tables, b"/w/f") == ["read 0+20"]
    assert moved(tables, b"/w/g") == ["read 0+5"]
    assert [(p["pid"], p["exit_code"]) for p in rows(tables, "processes")] == [(3, 4), (1, 2)]


def test_exec_ends_the_epoch_and_closes_on_exec() -> None:
    tables, _ = parse(
        RUN + '1 open("keep", O_WRONLY) = 3\n1 open("drop", O_RDONLY|O_CLOEXEC) = 4\n'
        '1 write(3, "x"..., 3) = 3\n1 execve("/bin/q", ["q", "a b"], 0x7ff /* 3 vars */) = 0\n'
        '1 write(3, "x"..., 4) = 4\n1 read(4, "x"..., 9) = 9\n1 +++ exited with 0 +++\n'
    )
    first, second = sorted(rows(tables, "processes"), key=lambda r: r["proc"])
    assert (first["argv"], first["prev"], first["exit_code"]) == ([b"p"], None, None)
    assert (second["argv"], second["prev"]) == ([b"q", b"a b"], first["proc"])
    assert (second["exe"], second["exit_code"]) == (b"/bin/q", 0)
    assert moved(tables, b"/w/keep") == ["write 0+3", "write 3+4"]
    assert moved(tables, b"/w/drop") == []
    assert [r["proc"] for r in rows(tables, "opens", path=b"/w/keep")] == [1, 2]


def test_failed_exec_changes_nothing() -> None:
    tables, _ = parse(RUN + '1 execve("/x", ["x"], 0x7 /* 1 var */) = -1 ENOENT (No such file)\n')
    assert len(rows(tables, "processes")) == 1


def test_exec_by_a_thread_that_is_not_the_leader() -> None:
    tables, stats = parse(
        RUN + "1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2\n"
        '1 open("f", O_RDONLY) = 3\n2 execve("/bin/q", ["q"], 0x7 /* 1 var */ <unfinished ...>\n'
        "1 +++ superseded by execve in pid 2 +++\n1 <... execve resumed>) = 0\n"
        '1 read(3, "x"..., 5) = 5\n1 +++ exited with 3 +++\n'
    )
    assert stats.bad == 0
    assert [(p["argv"], p["exit_code"]) for p in rows(tables, "processes")] == [
        ([b"p"], None),
        ([b"q"], 3),
    ]
    assert moved(tables, b"/w/f") == ["read 0+5"]


def test_child_that_is_seen_before_its_fork_returns() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDONLY) = 3\n1 vfork( <unfinished ...>\n2 read(3, "x"..., 5) = 5\n'
        '2 execve("/bin/c", ["c"], 0x7 /* 1 var */) = 0\n1 <... vfork resumed>) = 2\n'
    )
    child = rows(tables, "processes", argv=[b"c"])[0]
    assert (child["pid"], child["parent"]) == (2, 1)
    assert moved(tables, b"/w/f") == ["read 0+5"]


@pytest.mark.parametrize("call", ["vfork(", "clone(flags=SIGCHLD"])
def test_a_child_that_ends_before_its_parents_fork_returns_is_one_process(call: str) -> None:
    name = call.partition("(")[0]
    tables, _ = parse(
        RUN + f'1 {call} <unfinished ...>\n2 execve("/bin/c", ["c"], 0x7 /* 1 var */) = 0\n'
        "2 exit_group(0) = ?\n2 +++ exited with 0 +++\n"
        f"1 <... {name} resumed>) = 2\n1 {call}) = 3\n3 +++ exited with 0 +++\n"
        "1 +++ exited with 0 +++\n"
    )
    found = [(row["pid"], row["end_ns"] is not None) for row in rows(tables, "processes")]
    assert sorted(found) == [(1, True), (2, True), (2, True), (3, True)]  # 2: before and after exec


def test_children_of_several_unfinished_forks_wait_for_their_parent() -> None:
    tables, stats = parse(
        RUN + '1 open("f", O_RDONLY) = 3\n1 clone(flags=SIGCHLD) = 2\n2 open("g", O_RDONLY) = 4\n'
        "1 clone(flags=SIGCHLD <unfinished ...>\n2 clone(flags=SIGCHLD <unfinished ...>\n"
        '7 read(4, "x"..., 5) = 5\n8 read(3, "x"..., 6) = 6\n'
        "2 <... clone resumed>) = 7\n1 <... clone resumed>) = 8\n"
    )
    assert stats.bad == 0
    parents = {p["pid"]: p["parent"] for p in rows(tables, "processes")}
    assert parents == {1: None, 2: 1, 7: 2, 8: 1}
    assert moved(tables, b"/w/g") == ["read 0+5"]
    assert moved(tables, b"/w/f") == ["read 0+6"]


def test_a_descriptor_is_free_when_close_begins() -> None:
    tables, _ = parse(
        RUN + "1 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2\n"
        '1 open("f", O_RDONLY) = 3\n1 close(3 <unfinished ...>\n2 open("g", O_RDONLY) = 3\n'
        '1 <... close resumed>) = 0\n2 read(3, "x"..., 5) = 5\n'
    )
    # The resumed close is applied once, at its start: g stays open.
    assert moved(tables, b"/w/g") == ["read 0+5"]


def test_killed_process() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_WRONLY) = 3\n1 write(3, "x", 1) = 1\n1 +++ killed by SIGKILL +++\n'
    )
    (process,) = rows(tables, "processes")
    assert (process["exit_code"], process["exit_signal"]) == (None, 9)
    assert rows(tables, "opens")[0]["close_ns"] == process["end_ns"]


def test_copies_inside_the_kernel_are_counted_once_per_side() -> None:
    tables, stats = parse(
        RUN + '1 open("a", O_RDONLY) = 3\n1 open("b", O_WRONLY) = 4\n1 pipe2([5, 6], 0) = 0\n'
        "1 copy_file_range(3, NULL, 4, NULL, 100, 0) = 60\n"
        "1 copy_file_range(3, [7], 4, [500], 100, 0) = 30\n"
        "1 sendfile(4, 3, [200] => [211], 11) = 11\n1 sendfile(4, 3, NULL, 5) = 5\n"
        "1 splice(3, [1000], 6, NULL, 20, 0) = 20\n1 splice(5, NULL, 4, [2000], 20, 0) = 20\n"
    )
    assert stats.bad == 0
    assert moved(tables, b"/w/a") == [
        "read by copy_file_range 0+60",
        "read by copy_file_range 7+30",
        "read by sendfile 200+11",
        "read by sendfile 60+5",
        "read by splice 1000+20",
    ]
    assert moved(tables, b"/w/b") == [
        "write by copy_file_range 0+60",
        "write by copy_file_range 500+30",
        "write by sendfile 60+16",
        "write by splice 2000+20",
    ]


def test_clone_of_a_whole_file() -> None:
    tables, _ = parse(
        RUN + '1 open("a", O_RDONLY) = 3\n1 lseek(3, 0, SEEK_END) = 900\n'
        '1 open("b", O_WRONLY) = 4\n1 ioctl(4, BTRFS_IOC_CLONE or FICLONE, 3) = 0\n'
    )
    assert moved(tables, b"/w/a") == ["read by clone 0+900"]
    assert moved(tables, b"/w/b") == ["write by clone 0+900"]


def test_mapped_ranges_are_upper_bounds_within_the_file() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 lseek(3, 0, SEEK_END) = 5000\n'
        "1 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0x1000) = 0x7f00\n"
        "1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00\n"
        "1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE, 3, 0) = 0x7f00\n"
    )
    assert sorted(moved(tables, b"/w/f")) == [
        "read by mmap 0+4096",
        "read by mmap 4096+904",
        "write by mmap 4096+904",
    ]
    assert not any(r["exact"] for r in rows(tables, "extents"))


def test_truncation_and_holes() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 write(3, "x"..., 100) = 100\n1 ftruncate(3, 40) = 0\n'
        '1 truncate("f", 20) = 0\n'
        "1 fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 5, 10) = 0\n"
        "1 fallocate(3, 0, 0, 300) = 0\n"
        '1 open("f", O_WRONLY|O_TRUNC) = 4\n1 write(4, "x", 1) = 1\n'
    )
    assert moved(tables, b"/w/f") == [
        "write 0+100",
        "truncate 40+0",
        "truncate 20+0",
        "deallocate by fallocate 5+10",
        "truncate by open 0+0",
        "write 0+1",
    ]
    last = rows(tables, "opens", truncated=True)
    assert [(r["size_at_open"], r["write_bytes"]) for r in last] == [(300, 1)]


def test_streams_that_take_turns_are_few_runs() -> None:
    tables, _ = parse(
        RUN
        + '1 open("f", O_RDONLY) = 3\n'
        + "".join(
            f'1 pread64(3, "x"..., 10, {1000 * stream + 10 * i}) = 10\n'
            for i in range(13)
            for stream in range(8)
        )
    )
    runs = rows(tables, "extents")
    assert len(runs) <= 16  # for 104 calls
    seen = {
        run["start"] + i * run["stride"] + k
        for run in runs
        for i in range(run["count"])
        for k in range(run["length"])
    }
    assert seen == {1000 * s + k for s in range(8) for k in range(130)}
    assert sum(r["bytes"] for r in runs) == 1040


def test_random_reads_keep_every_range() -> None:
    offsets = [(i * 7919) % 100_003 * 10 for i in range(997)]
    tables, _ = parse(
        RUN
        + '1 open("f", O_RDONLY) = 3\n'
        + "".join(f'1 pread64(3, "x"..., 7, {at}) = 7\n' for at in offsets)
    )
    seen: list[int] = []
    for run in rows(tables, "extents"):
        assert run["length"] == 7
        seen += [run["start"] + i * run["stride"] for i in range(run["count"])]
    assert sorted(seen) == sorted(offsets)
    assert sum(r["ops"] for r in rows(tables, "extents")) == 997
    assert sum(r["bytes"] for r in rows(tables, "extents")) == 7 * 997


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=40))
@example([(6, 1), (7, 2), (0, 1), (7, 2), (0, 1)])  # two runs that end at the same position
def test_accesses_that_overlap_are_all_counted(accesses: list[tuple[int, int]]) -> None:
    """A linker goes back and rewrites parts; every byte of each access is counted in the runs."""
    tables, _ = parse(
        RUN
        + '1 open("f", O_RDWR) = 3\n'
        + "".join(f'1 pwrite64(3, "x"..., {n}, {at}) = {n}\n' for at, n in accesses)
    )
    runs = rows(tables, "extents")
    assert sum(r["ops"] for r in runs) == len(accesses)
    assert sum(r["bytes"] for r in runs) == sum(n for _, n in accesses)
    found = Counter(
        r["start"] + i * r["stride"] + k
        for r in runs
        for i in range(r["count"])
        for k in range(r["length"])
    )
    assert found == Counter(at + k for at, n in accesses for k in range(n))


def test_no_run_spans_a_truncation() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 write(3, "x"..., 10) = 10\n1 ftruncate(3, 0) = 0\n'
        '1 write(3, "x"..., 10) = 10\n'
    )
    assert moved(tables, b"/w/f") == ["write 0+10", "truncate 0+0", "write 10+10"]


def test_writers_and_readers_in_turn_keep_their_order() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR|O_CREAT|O_EXCL, 0666) = 3\n1 clone(flags=SIGCHLD) = 2\n'
        '1 pwrite64(3, "x"..., 10, 0) = 10\n2 pread64(3, "x"..., 10, 0) = 10\n'
        '1 pwrite64(3, "x"..., 10, 10) = 10\n2 pread64(3, "x"..., 10, 10) = 10\n'
    )
    assert moved(tables, b"/w/f") == ["write 0+10", "read 0+10", "write 10+10", "read 10+10"]


def test_readers_at_the_same_time_stay_whole_runs() -> None:
    tables, _ = parse(
        RUN
        + '1 open("f", O_RDONLY) = 3\n1 clone(flags=SIGCHLD) = 2\n2 open("f", O_RDONLY) = 4\n'
        + '1 read(3, "x"..., 10) = 10\n2 read(4, "x"..., 10) = 10\n' * 20
    )
    assert moved(tables, b"/w/f") == ["read 0+200", "read 0+200"]


NAMES = """
1 execve("/bin/p", ["p"], 0x7ff /* 3 vars */) = 0
1 mkdir("d", 0777) = 0
1 openat(AT_FDCWD, "d/tmp", O_WRONLY|O_CREAT, 0666) = 3
1 write(3, "x"..., 9) = 9
1 link("d/tmp", "hard") = 0
1 rename("d/tmp", "d/final") = 0
1 rename("d", "e") = 0
1 openat(AT_FDCWD, "e/final", O_RDONLY) = 4
1 read(4, "x"..., 9) = 9
1 openat(AT_FDCWD, "hard", O_RDONLY) = 5
1 read(5, "x"..., 4) = 4
1 unlink("hard") = 0
1 symlink("e", "sym") = 0
1 openat(AT_FDCWD, "sym/final", O_RDONLY) = 6
1 read(6, "x"..., 2) = 2
1 openat(AT_FDCWD, "other", O_WRONLY|O_CREAT|O_EXCL, 0666) = 7
1 renameat2(AT_FDCWD, "other", AT_FDCWD, "e/final", RENAME_EXCHANGE) = 0
1 rename("e/final", "gone") = 0
1 unlink("other") = 0
1 openat(AT_FDCWD, "other", O_WRONLY|O_CREAT, 0666) = 8
"""


def test_one_file_through_all_its_names() -> None:
    tables, stats = parse(NAMES)
    assert stats.bad == 0
    files = {r["path"]: r["file"] for r in rows(tables, "opens")}
    first = files[b"/w/d/tmp"]
    assert [files[p] for p in (b"/w/e/final", b"/w/hard")] == [first, first]
    names = [(r["op"], r["path"], r["new_path"]) for r in rows(tables, "names", file=first)]
    assert names == [
        ("create", b"/w/d/tmp", None),
        ("link", b"/w/d/tmp", b"/w/hard"),
        ("rename", b"/w/d/tmp", b"/w/d/final"),
        ("unlink", b"/w/hard", None),
        ("exchange", b"/w/e/final", b"/w/other"),
        ("unlink", b"/w/other", None),
    ]
    by_id = {r["file"]: r for r in rows(tables, "files")}
    assert by_id[first]["deleted"] and not by_id[first]["existed"]
    assert by_id[first]["size_bytes"] == 9
    new = [r["file"] for r in rows(tables, "opens", path=b"/w/other")]
    assert len(set(new)) == 2  # the name was reused for a new file
    assert [r["created"] for r in rows(tables, "opens", path=b"/w/other")] == [True, True]
    assert by_id[new[0]]["deleted"] is False  # its current name is `gone`
    assert rows(tables, "names", op="mkdir")[0]["path"] == b"/w/d"
    assert rows(tables, "names", op="symlink")[0]["new_path"] == b"e"


def test_a_renamed_file_replaces_the_one_with_that_name() -> None:
    tables, _ = parse(
        RUN + '1 open("old", O_RDONLY) = 3\n1 open("new", O_WRONLY|O_CREAT|O_EXCL, 0666) = 4\n'
        '1 rename("new", "old") = 0\n'
    )
    old, new = (rows(tables, "opens", path=p)[0]["file"] for p in (b"/w/old", b"/w/new"))
    by_id = {r["file"]: r["deleted"] for r in rows(tables, "files")}
    assert (by_id[old], by_id[new]) == (True, False)
    assert [r["op"] for r in rows(tables, "names", file=old)] == ["open", "unlink"]


@pytest.mark.parametrize(
    ("before", "flags", "existed", "created"),
    [
        ("", "O_RDONLY", True, False),
        ("", "O_WRONLY|O_CREAT|O_EXCL", False, True),
        ("", "O_WRONLY|O_CREAT", None, False),
        (
            '1 open("f", O_RDONLY) = -1 ENOENT (No such file or directory)\n',
            "O_RDWR|O_CREAT",
            False,
            True,
        ),
        (
            '1 stat("f", 0x7f) = -1 ENOENT (No such file or directory)\n',
            "O_RDWR|O_CREAT",
            False,
            True,
        ),
        (
            '1 stat("f", {st_dev=makedev(0x8, 0x1), st_ino=7, st_mode=S_IFREG|0644, '
            "st_size=12, ...}) = 0\n",
            "O_RDWR|O_CREAT",
            True,
            False,
        ),
        ('1 unlink("f") = 0\n', "O_RDWR|O_CREAT", False, True),
    ],
)
def test_whether_a_file_was_there_before(
    before: str, flags: str, existed: bool | None, created: bool
) -> None:
    tables, _ = parse(RUN + before + f'1 open("f", {flags}, 0666) = 3\n')
    (row,) = rows(tables, "opens")
    assert row["created"] is created
    assert [r["existed"] for r in rows(tables, "files", file=row["file"])] == [existed]


def test_fstat_tells_identity_and_joins_hard_links() -> None:
    facts = "{st_dev=makedev(0x8, 0x1), st_ino=77, st_mode=S_IFREG|0644, st_size=1000, ...}"
    tables, _ = parse(
        RUN + f'1 open("a", O_RDONLY) = 3\n1 fstat(3, {facts}) = 0\n1 open("b", O_RDONLY) = 4\n'
        f'1 newfstatat(4, "", {facts}, AT_EMPTY_PATH) = 0\n1 read(4, "x"..., 10) = 10\n'
    )
    files = {r["file"] for r in rows(tables, "opens")}
    assert len(files) == 1
    assert [(r["ino"], r["size_bytes"]) for r in rows(tables, "files")] == [(77, 1000)]


def test_working_directories_belong_to_processes() -> None:
    tables, _ = parse(
        RUN + '1 clone(flags=SIGCHLD) = 2\n2 chdir("sub") = 0\n2 open("f", O_RDONLY) = 3\n'
        '1 open("f", O_RDONLY) = 3\n2 execve("./x", ["x"], 0x7 /* 1 var */) = 0\n'
        '2 open(".", O_RDONLY|O_DIRECTORY) = 4\n2 chdir("/") = 0\n2 fchdir(4) = 0\n'
        '2 open("../g", O_RDONLY) = 5\n'
    )
    paths = [r["path"] for r in sorted(rows(tables, "opens"), key=lambda r: r["open"])]
    assert paths == [b"/w/sub/f", b"/w/f", b"/w/sub", b"/w/g"]
    assert rows(tables, "processes", argv=[b"x"])[0]["cwd"] == b"/w/sub"
    assert rows(tables, "processes", argv=[b"x"])[0]["exe"] == b"/w/sub/x"


def test_descriptors_passed_over_a_socket_share_the_offset() -> None:
    rights = (
        "msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, "
        "cmsg_data=[%s]}], msg_flags=0"
    )
    tables, _ = parse(
        RUN + '1 open("f", O_RDONLY) = 3\n1 read(3, "x"..., 5) = 5\n1 clone(flags=SIGCHLD) = 2\n'
        "2 close(3) = 0\n"
        f"1 sendmsg(9, {{msg_name=NULL, {rights % '3'}}}, 0) = 1\n"
        f'2 recvmsg(9, {{msg_name=NULL, {rights % "8"}}}, 0) = 1\n2 read(8, "x"..., 6) = 6\n'
    )
    assert moved(tables, b"/w/f") == ["read 0+5", "read 5+6"]
    assert [r["via"] for r in rows(tables, "opens", proc=2)] == ["passed"]


def test_pipes_and_memfds_are_no_files() -> None:
    tables, _ = parse(
        RUN + '1 pipe([3, 4]) = 0\n1 clone(flags=SIGCHLD) = 2\n2 write(4, "x"..., 11) = 11\n'
        '1 read(3, "x"..., 11) = 11\n1 memfd_create("m", MFD_CLOEXEC) = 5\n1 write(5, "x", 1) = 1\n'
    )
    assert sorted(r["kind"] for r in rows(tables, "files")) == ["memfd", "pipe"]
    assert rows(tables, "extents") == []
    pipe = {
        (r["proc"], r["read_bytes"], r["write_bytes"]) for r in rows(tables, "opens", via="pipe")
    }
    assert pipe == {(1, 11, 0), (2, 0, 11)}


def test_reopening_through_proc_is_the_same_file() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 open("/proc/self/fd/3", O_RDONLY) = 4\n'
        '1 read(4, "x"..., 5) = 5\n1 open("/dev/fd/3", O_RDONLY) = 5\n'
    )
    assert len({r["file"] for r in rows(tables, "opens")}) == 1
    assert moved(tables, b"/w/f") == ["read 0+5"]


def test_tmpfile_gets_its_name_by_linkat() -> None:
    tables, _ = parse(
        RUN + '1 openat(AT_FDCWD, "/w", O_RDWR|O_TMPFILE, 0600) = 3</w/#99>(deleted)\n'
        '1 write(3, "x"..., 5) = 5\n'
        '1 linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "named", AT_SYMLINK_FOLLOW) = 0\n'
        '1 open("named", O_RDONLY) = 4\n'
    )
    assert moved(tables, b"/w/named") == ["write 0+5"]
    assert [r["deleted"] for r in rows(tables, "files")] == [False]


def test_a_link_to_a_descriptor_of_another_process_leaves_the_own_file_alone() -> None:
    tables, _ = parse(
        RUN + '1 openat(AT_FDCWD, "/w", O_RDWR|O_TMPFILE, 0600) = 3</w/#99>(deleted)\n'
        '1 write(3, "x"..., 5) = 5\n'
        '1 linkat(AT_FDCWD, "/proc/2/fd/3", AT_FDCWD, "other", AT_SYMLINK_FOLLOW) = 0\n'
        '1 linkat(AT_FDCWD, "/proc/1/fd/3", AT_FDCWD, "named", AT_SYMLINK_FOLLOW) = 0\n'
    )
    assert moved(tables, b"/w/named") == ["write 0+5"]
    assert moved(tables, b"/w/other") == []


def test_annotations_tell_what_the_log_left_out() -> None:
    tables, _ = parse(
        '9 read(3</data/in>, "x"..., 10) = 10\n9 write(1</data/out>, "x"..., 4) = 4\n'
    )
    assert {r["path"]: (r["read_bytes"], r["write_bytes"]) for r in rows(tables, "opens")} == {
        b"/data/in": (10, 0),
        b"/data/out": (0, 4),
    }
    assert not any(r["exact"] for r in rows(tables, "extents"))


def test_descriptors_that_were_never_seen_opened_are_counted() -> None:
    tables, _ = parse(RUN + '1 read(7, "x"..., 10) = 10\n1 write(8, "x", 1) = 1\n')
    assert [(r["kind"], r["count"]) for r in rows(tables, "losses")] == [("unknown_calls", 2)]


def test_metadata_calls_are_counted_per_directory() -> None:
    tables, _ = parse(
        RUN + '1 stat("a/x", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n'
        '1 lstat("a/y", 0x7f) = -1 ENOENT (No such file or directory)\n'
        '1 open("a/z", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
        '1 access("a/x", R_OK) = 0\n1 open("a", O_RDONLY|O_DIRECTORY) = 3\n'
        '1 getdents64(3, 0x55 /* 4 entries */, 32768) = 120\n1 unlink("a/x") = 0\n'
    )
    found = {(r["op"], r["dir"]): (r["count"], r["errors"]) for r in rows(tables, "metadata_ops")}
    assert found == {
        ("stat", b"/w/a"): (2, 1),
        ("failed_open", b"/w/a"): (1, 1),
        ("access", b"/w/a"): (1, 0),
        ("readdir", b"/w/a"): (1, 0),
        ("unlink", b"/w/a"): (1, 0),
    }


def test_environment_markers_and_task_marks() -> None:
    tables, _ = parse(
        '1 1700000000.5 execve("/bin/p", ["p"], ["HOME=/root", "TRACEHINT_TASK=align 7", '
        '"SLURM_JOB_ID=12"]) = 0\n'
    )
    (process,) = rows(tables, "processes")
    assert {e["name"]: e["value"] for e in process["env"]} == {
        "TRACEHINT_TASK": b"align 7",
        "SLURM_JOB_ID": b"12",
    }
    (mark,) = rows(tables, "marks")
    assert (mark["kind"], mark["name"], mark["proc"]) == ("task_begin", "align 7", process["proc"])


def test_io_uring_is_counted_as_unseen() -> None:
    tables, _ = parse(RUN + "1 io_uring_enter(4, 3, 1, 0, NULL, 8) = 3\n")
    assert [(r["kind"], r["count"], r["detail"]) for r in rows(tables, "losses")] == [
        ("unknown_calls", 3, "io_uring")
    ]


def test_pid_namespaces_use_the_outer_number() -> None:
    tables, _ = parse(
        RUN + "1 clone(flags=SIGCHLD) = 2 /* 77 in strace's PID NS */\n"
        '77 open("f", O_RDONLY) = 3\n'
    )
    assert [(p["pid"], p["parent"]) for p in rows(tables, "processes", pid=77)] == [(77, 1)]
