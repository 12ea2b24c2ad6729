"""strace logs of users: every option that changes the lines gives the same run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import inside
from tracehint.collectors.strace import StraceCollector
from tracehint.collectors.strace.importer import import_strace
from tracehint.errors import InputError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.store import Bundle, read_bundle

_CHECK = StraceCollector().check()
needs_strace = pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)
WORK = (
    "head -c 4999 /dev/zero > a; cat a a > b; (cd sub && cp ../b c && mv c d); "
    "ln b hard; rm hard; tail -c 1009 sub/d | wc -c; exit 5"
)
VARIANTS = [
    "-f -o log", "-f -y -o log", "-f -yy -ttt -o log", "-f -tt -T -o log", "-f -t -o log",
    "-f -r -o log", "-f -tt -s 3 -y -o log", "-f -s 0 -o log", "-f -v -i -o log",
    "-f -xx -y -o log", "-f -a 1 -n -y -o log",
    "-ff -o dir/x", "-ff -y -ttt -o dir/x", "-ff -tt -T -o dir/x", "-ff -y -s 9 -o dir/x",
    "-f --seccomp-bpf -qq -ttt -y -e signal=none -o log -e trace=file,desc,process",
]  # fmt: skip  # a table
# test_strace_lexer.py covers the line prefixes of these options.
ALIKE = {
    "-f -yy -ttt -o log", "-f -t -o log", "-f -v -i -o log", "-f -a 1 -n -y -o log",
    "-ff -tt -T -o dir/x", "-ff -y -s 9 -o dir/x",
}  # fmt: skip  # a table


def traced(folder: Path, options: str) -> Path:
    """Run WORK under strace with these options and return the log."""
    (folder / "sub").mkdir(parents=True)
    (folder / "dir").mkdir()
    done = subprocess.run(
        ["strace", *options.split(), "sh", "-c", WORK], cwd=folder, check=False,
        capture_output=True, text=True,
    )  # fmt: skip  # a table
    assert done.returncode == 5, done.stderr
    return folder / ("dir" if "dir/" in options else "log")


def bytes_by(bundle: Bundle, folder: Path) -> dict[tuple[bytes, bytes], tuple[int, int]]:
    """Return (program, file below the folder) -> bytes read, bytes written."""
    processes = bundle.tables["processes"].to_pylist()
    programs = {r["proc"]: (r["exe"] or b"").rpartition(b"/")[2] for r in processes}
    base = os.fsencode(folder) + b"/"
    found: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    for row in bundle.tables["opens"].to_pylist():
        if row["path"].startswith(base) and row["read_bytes"] + row["write_bytes"]:
            key = (programs[row["proc"]], row["path"][len(base) :])
            before = found.get(key, (0, 0))
            found[key] = (before[0] + row["read_bytes"], before[1] + row["write_bytes"])
    return found


def imported(source: Path, folder: Path) -> tuple[Bundle, Manifest]:
    manifest = import_strace([source], folder / "out.trace")
    return read_bundle(folder / "out.trace"), manifest


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize(
    "options", [pytest.param(o, marks=[pytest.mark.full] * (o in ALIKE)) for o in VARIANTS]
)
def test_every_variant_gives_the_same_run(tmp_path: Path, options: str) -> None:
    bundle, manifest = imported(traced(tmp_path, options), tmp_path)
    found = bytes_by(bundle, tmp_path)
    tail = found.pop((b"tail", b"sub/d"))
    assert tail[0] >= 1009
    assert found == {
        (b"head", b"a"): (0, 4999),
        (b"cat", b"a"): (9998, 0),
        (b"cat", b"b"): (0, 9998),
        (b"cp", b"b"): (9998, 0),
        (b"cp", b"sub/c"): (0, 9998),
    }
    losses = bundle.tables["losses"].to_pylist()
    lines_lost = [r for r in losses if r["kind"] == "log_lines"]
    assert len(lines_lost) == ("-s 0" in options)  # here `pipe([...])` has no descriptors
    names = bundle.tables["names"].to_pylist()
    copied = next(r["file"] for r in names if r["path"].endswith(b"sub/c"))
    assert [(r["op"], r["new_path"]) for r in names if r["file"] == copied][-1] == (
        "rename",
        os.fsencode(tmp_path / "sub/d"),
    )
    opened = [r for r in bundle.tables["opens"].to_pylist() if r["file"] == copied]
    assert {r["path"] for r in opened} == {os.fsencode(tmp_path / p) for p in ("sub/c", "sub/d")}
    rows = bundle.tables["processes"].to_pylist()
    (root,) = [r for r in rows if r["parent"] is None]
    if "-s" not in options.split():
        assert root["argv"][:2] == [b"sh", b"-c"]
    assert root["exit_code"] == manifest.exit_status == 5
    assert all(r["end_ns"] is None or r["end_ns"] >= r["start_ns"] for r in rows)
    assert "bytes" not in manifest.blind_to


@needs_strace
@pytest.mark.parametrize("options", ["-f -tt -o log", "-f -ttt -o log", "-f -r -o log"])
def test_times_are_those_of_the_run(tmp_path: Path, options: str) -> None:
    import time

    before = time.time_ns()
    bundle, manifest = imported(traced(tmp_path, options), tmp_path)
    after = time.time_ns()
    second = 10**9
    assert before - second <= manifest.started_ns <= after + second
    opens = bundle.tables["opens"]["open_ns"].to_pylist()
    assert all(before - second <= t <= after + second for t in opens)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def rows(bundle: Bundle, table: str, **match: Any) -> list[dict[str, Any]]:
    found = bundle.tables[table].to_pylist()
    return [r for r in found if all(r[k] == v for k, v in match.items())]


def test_separate_logs_without_times_follow_the_parents_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write(
        folder / "x.20",
        'execve("/bin/sh", ["sh"], 0x7 /* 1 var */) = 0',
        "fork() = 30",
        "wait4(-1, [], 0, NULL) = 30",
        "fork() = 10",
        "wait4(-1, [], 0, NULL) = 10",
        "+++ exited with 0 +++",
    )
    write(
        folder / "x.30",
        'execve("/bin/w", ["w"], 0x7 /* 1 var */) = 0',
        'open("/f", O_WRONLY|O_CREAT, 0666) = 3',
        'write(3, "x"..., 7) = 7',
        "+++ exited with 0 +++",
    )
    write(
        folder / "x.10",
        'execve("/bin/r", ["r"], 0x7 /* 1 var */) = 0',
        'open("/f", O_RDONLY) = 3',
        'read(3, "x"..., 7) = 7',
        "+++ exited with 0 +++",
    )
    bundle, manifest = imported(folder, tmp_path)
    parents = {r["pid"]: r["parent"] for r in rows(bundle, "processes") if r["argv"]}
    assert parents[20] is None and parents[10] and parents[30]
    write_ns, read_ns = (rows(bundle, "extents", op=op)[0]["first_ns"] for op in ("write", "read"))
    assert write_ns < read_ns
    assert any("no times" in n for n in manifest.notes)


def test_a_broken_file_among_good_ones_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    good = write(
        folder / "a.log",
        '5 execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0',
        "5 this is nothing",
        '5 open("/f", O_RDONLY) = 3',
    )
    assert good.exists()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(b"\0\1\2" * 100)
    write(folder / "text", "dear diary", "today I wrote no log")
    (folder / "away").symlink_to("/etc/passwd")
    done = inside("import", "logs", "-o", "out.trace", cwd=tmp_path)
    assert done.returncode == 0
    for line in ("empty: empty", "binary, text: not a log", "away: a symbolic link"):
        assert f"left out: {line}" in done.stderr
    assert "1 not understood" in done.stderr
    (loss,) = rows(read_bundle(tmp_path / "out.trace"), "losses")
    assert (loss["kind"], loss["count"], loss["detail"]) == ("log_lines", 1, "not understood: 2")


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0\1\2" * 100)
    with pytest.raises(InputError, match="not a strace log"):
        import_strace([tmp_path / "binary"], tmp_path / "out.trace")
    assert not (tmp_path / "out.trace").exists()
    done = inside("import", "binary", "-o", "o.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert "strace" in done.stderr and "Traceback" not in done.stderr
    done = inside("import", "missing", "-o", "o.trace", cwd=tmp_path)
    assert (done.returncode, "no such file" in done.stderr) == (2, True)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.999])
def test_a_truncated_log_gives_what_is_there(tmp_path: Path, cut: float) -> None:
    lines = ['7 execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0', '7 open("/f", O_RDONLY) = 3']
    lines += ['7 read(3, "abcdefgh"..., 10) = 10'] * 50
    text = "\n".join(lines)
    (tmp_path / "log").write_text(text[: int(len(text) * cut)])
    bundle, _ = imported(tmp_path / "log", tmp_path)
    (row,) = rows(bundle, "opens")
    assert 0 < row["read_bytes"] <= 500
    assert row["close_ns"] is None


def test_a_log_of_names_only_says_that_bytes_are_missing(tmp_path: Path) -> None:
    write(
        tmp_path / "log",
        '7 execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0',
        '7 openat(AT_FDCWD, "in", O_RDONLY) = 3',
    )
    bundle, manifest = imported(tmp_path / "log", tmp_path)
    assert "bytes" in manifest.blind_to
    assert manifest.cwd == str(tmp_path)  # a guess, stated in a note
    assert any("working directory" in n for n in manifest.notes)
    assert rows(bundle, "opens")[0]["path"] == os.fsencode(tmp_path / "in")


def test_several_logs_are_one_run(tmp_path: Path) -> None:
    for name, t in (("a", 1700000000), ("b", 1700000100)):
        write(
            tmp_path / f"{name}.log",
            f'7 {t}.5 execve("/bin/{name}", ["{name}"], 0x7 /* 1 var */) = 0',
            f'7 {t}.6 open("/{name}", O_RDONLY) = 3',
            f'7 {t}.7 read(3, "x"..., 9) = 9',
            f"7 {t}.8 +++ exited with 0 +++",
        )
    manifest = import_strace([tmp_path / "b.log", tmp_path / "a.log"], tmp_path / "out.trace")
    bundle = read_bundle(tmp_path / "out.trace")
    assert manifest.started_ns == 1700000000500000000
    assert len({r["proc"] for r in rows(bundle, "processes")}) == 2
    assert len({r["file"] for r in rows(bundle, "extents")}) == 2


def test_existing_output_and_unreadable_input(tmp_path: Path) -> None:
    write(tmp_path / "log", '7 execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0')
    assert inside("import", "log", "-o", "o.trace", cwd=tmp_path).returncode == 0
    again = inside("import", "log", "-o", "o.trace", cwd=tmp_path)
    assert again.returncode == 2 and "--force" in again.stderr
    assert inside("import", "log", "--force", "-o", "o.trace", cwd=tmp_path).returncode == 0
    other = inside("import", "log", "--force", "-o", "log", cwd=tmp_path)
    assert other.returncode == 2
    assert (tmp_path / "log").is_file()


def test_secrets_in_logs_are_redacted(tmp_path: Path) -> None:
    write(tmp_path / "log", '7 execve("/bin/x", ["x", "--password", "hunter2"], ["A=1"]) = 0')
    bundle, manifest = imported(tmp_path / "log", tmp_path)
    assert rows(bundle, "processes")[0]["argv"] == [b"x", b"--password", b"<redacted>"]
    assert "hunter2" not in " ".join(manifest.command)


CALLS = 200_000


@pytest.mark.slow
def test_speed_and_memory(tmp_path: Path) -> None:
    """Very many lines: memory grows with distinct ranges, not with calls."""
    import resource

    with (tmp_path / "log").open("w") as stream:
        stream.write('7 1700000000.0 execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0\n')
        stream.write('7 1700000000.1 openat(AT_FDCWD</w>, "a", O_RDWR) = 3</w/a>\n')
        for i in range(CALLS):
            stream.write(f"7 {1700000001 + i * 1e-5:.9f} read(3</w/a>, 0x1dac3730, 4096) = 4096\n")
    (tmp_path / "few").mkdir()
    write(tmp_path / "few" / "log", '7 execve("/bin/x", ["x"], ["A=1"]) = 0')
    imported(tmp_path / "few" / "log", tmp_path / "few")  # memory that any import needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bundle, _ = imported(tmp_path / "log", tmp_path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert rows(bundle, "opens")[0]["read_bytes"] == 4096 * CALLS
    assert grown < CALLS // 10  # KiB: about a hundred bytes per call


def test_a_workflow_file_adds_what_it_declares(tmp_path: Path) -> None:
    write(
        tmp_path / "log",
        '7 1700000000.1 execve("/bin/sh", ["sh", "-c", "cat in > out"], 0x7 /* 1 var */) = 0',
        f'7 1700000000.2 getcwd("{tmp_path}", 4096) = 9',
        '7 1700000000.3 openat(AT_FDCWD, "in", O_RDONLY) = 3',
        '7 1700000000.4 read(3, "x"..., 9) = 9',
        "7 1700000000.5 +++ exited with 0 +++",
    )
    (tmp_path / "wf.makeflow").write_text("out: in never-opened\n\tcat in > out\n")
    done = inside("import", "log", "--workflow", "wf.makeflow", "-o", "out.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    declared = rows(read_bundle(tmp_path / "out.trace"), "declared_io")
    names = {(r["path"].rpartition(b"/")[2], r["direction"]) for r in declared}
    assert names == {(b"in", "in"), (b"never-opened", "in"), (b"out", "out")}
    missing = inside("import", "log", "--workflow", "nope", "-o", "b.trace", cwd=tmp_path)
    assert missing.returncode == 2 and "nope" in missing.stderr
    assert not (tmp_path / "b.trace").exists()
