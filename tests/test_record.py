"""`record`: what is passed through, and the messages in case of errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, record, record_words, tracehint
from tests.support.patience import PATIENCE_S, until
from tracehint.collectors.registry import COLLECTORS, check
from tracehint.schemas.spool.constants import VERSION
from tracehint.schemas.store import read_bundle

USABLE = [name for name in ("ebpf", "preload", "strace") if check(name).usable]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not USABLE, reason="no collector can run here")]
full = pytest.mark.full
ONE = USABLE[-1:]  # slow but always usable, for tests that do not depend on the collector


@pytest.mark.parametrize("collector", USABLE)
def test_streams_and_exit_code_pass_through(tmp_path: Path, collector: str) -> None:
    done = record(
        "sh",
        "-c",
        "cat; echo err >&2; exit 7",
        collector=collector,
        to="r.trace",
        cwd=tmp_path,
        input="from stdin\n",
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "from stdin\n", "err\n")
    assert read_bundle(tmp_path / "r.trace").manifest.exit_status == 7


SIZES = """
import os, subprocess
open("cut", "w").write("x" * 1000)
os.truncate("cut", 500)
open("cut", "w").write("short")
with open("grown", "w") as out:
    out.write("a")
    out.flush()
    subprocess.run(["cat", "grown"])
    out.write("bcd")
with open("own", "w") as out:
    out.write("a")
    out.flush()
    with open("own") as again:
        again.read()
    out.write("bcd")
"""


@pytest.mark.parametrize("collector", USABLE)
def test_a_file_has_the_size_that_its_last_change_gave_it(tmp_path: Path, collector: str) -> None:
    """Neither the size at the last open nor that of a truncation before the last write."""
    record(sys.executable, "-c", SIZES, collector=collector, to="r.trace", cwd=tmp_path)
    tables = read_bundle(tmp_path / "r.trace").tables
    paths = {row["file"]: os.fsdecode(row["path"]) for row in tables["names"].to_pylist()}
    sizes = {paths.get(row["file"]): row["size_bytes"] for row in tables["files"].to_pylist()}
    wanted = {str(tmp_path / name): size for name, size in (("cut", 5), ("grown", 4), ("own", 4))}
    assert {path: sizes[path] for path in wanted} == wanted


NAMELESS = """
import ctypes, os, subprocess
for name in ("first", "second"):
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"x" * 100)
    own, follow = b"/proc/self/fd/%d" % fd, 0x400
    ctypes.CDLL(None).linkat(-100, own, -100, name.encode(), follow)
    os.close(fd)
    subprocess.run(["rm", name] if name == "first" else ["mv", name, "third"])
"""


@pytest.mark.parametrize("collector", USABLE)
def test_files_that_began_without_a_name(tmp_path: Path, collector: str) -> None:
    """The second has the inode number of the first, which no longer exists."""
    record(sys.executable, "-c", NAMELESS, collector=collector, to="r.trace", cwd=tmp_path)
    found = json.loads(tracehint("analyze", "r.trace", "--format", "json", cwd=tmp_path).stdout)
    seen = [
        ({n for n in (f["path"], *f["other_paths"]) if "#" not in n}, f["deleted"])
        for f in found["files"]
        if f["producers"]
    ]
    assert seen == [({"first"}, True), ({"second", "third"}, False)]


@pytest.mark.parametrize("collector", USABLE)
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGKILL, pytest.param(signal.SIGABRT, marks=full)]
)
def test_the_recorder_dies_by_the_commands_signal(
    tmp_path: Path, collector: str, number: signal.Signals
) -> None:
    done = record(
        "sh", "-c", f"kill -{number.name[3:]} $$", collector=collector, to="r.trace", cwd=tmp_path
    )
    assert done.returncode == -number
    bundle = read_bundle(tmp_path / "r.trace")
    assert bundle.manifest.exit_status == 128 + number
    assert bundle.manifest.complete
    (root,) = [p for p in bundle.tables["processes"].to_pylist() if p["parent"] is None]
    assert root["exit_signal"] == number


@pytest.mark.parametrize("collector", USABLE)
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        signal.SIGINT,
        *(pytest.param(n, marks=full) for n in (signal.SIGHUP, signal.SIGUSR1)),
    ],
)
def test_signals_to_the_recorder_reach_the_command(
    tmp_path: Path, collector: str, number: signal.Signals
) -> None:
    trap = f"trap 'echo caught; exit 9' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [*TRACEHINT, *record_words("sh", "-c", trap, collector=collector, to="r.trace")],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "caught\n"
        assert process.wait(PATIENCE_S) == 9
    assert read_bundle(tmp_path / "r.trace").manifest.complete


def test_interrupt_from_the_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    """Ctrl-C is sent to the whole foreground group; the recorder must not send it again."""
    import pty

    script = (
        "import signal, sys, time\nn = 0\n"
        "def hit(*_):\n    global n\n    n += 1\n"
        "signal.signal(signal.SIGINT, hit)\nprint('ready', flush=True)\n"
        "while not n: time.sleep(0.05)\n"
        "time.sleep(0.8)\nprint('hits', n, flush=True)\nsys.exit(5)\n"
    )
    (tmp_path / "s.py").write_text(script)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        words = f"-m tracehint record --quiet --collector {ONE[0]} -o r.trace --".split()
        os.execv(sys.executable, [sys.executable, *words, sys.executable, "s.py"])
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while data := os.read(terminal, 1000):
            seen += data
    except OSError:
        pass  # the terminal closes with its last process
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert b"hits 1" in seen
    assert os.waitstatus_to_exitcode(status) == 5


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["no-such-program-here"], 127, "command not found"),
        (["./missing"], 127, "command not found"),
        (["./plain"], 126, "not executable"),
        (["./folder"], 126, "directory"),
        (["./broken"], 127, "interpreter"),
    ],
)
def test_commands_that_cannot_run(
    tmp_path: Path, command: list[str], code: int, words: str
) -> None:
    (tmp_path / "plain").write_text("echo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    done = tracehint("record", "--collector", ONE[0], "--", *command, cwd=tmp_path)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.trace"))  # no bundle remains


def test_a_script_without_first_line_runs_as_it_would_from_a_shell(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("echo it runs: $0 $1\n")
    (tmp_path / "plain").chmod(0o755)
    done = tracehint(
        "record", "--quiet", "--collector", ONE[0], "--", "./plain", "a b", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "it runs: ./plain a b\n")


def test_existing_bundles_are_not_overwritten(tmp_path: Path) -> None:
    def go(*options: str) -> subprocess.CompletedProcess[str]:
        return tracehint(
            "record", "--quiet", "--collector", ONE[0], *options, "--", "touch", "ran", cwd=tmp_path
        )

    assert go("-o", "r.trace").returncode == 0
    (tmp_path / "ran").unlink()
    again = go("-o", "r.trace")
    assert again.returncode == 125
    assert "--force" in again.stderr
    assert not (tmp_path / "ran").exists()  # the command was not run
    assert go("-o", "r.trace", "--force").returncode == 0
    assert go().returncode == 0
    assert go().returncode == 0
    assert {p.name for p in tmp_path.glob("touch*")} == {"touch.trace", "touch-2.trace"}


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data").write_text("precious")
    (tmp_path / "link").symlink_to("folder")
    for name in ("file", "folder", "link", "file/below", ""):
        done = record("touch", "ran", collector=ONE[0], to=name, options="--force", cwd=tmp_path)
        assert done.returncode == 125, name
        assert "-o" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "ran").exists()
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/data").read_text() == "precious"


def test_unknown_collector_and_missing_command(tmp_path: Path) -> None:
    assert tracehint("record", "--collector", "magic", "--", "true", cwd=tmp_path).returncode == 125
    assert tracehint("record", cwd=tmp_path).returncode == 125
    assert tracehint("record", "--no-such-option", "--", "true", cwd=tmp_path).returncode == 125


def test_missing_strace_names_the_remedy(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "true").symlink_to("/bin/true")
    done = tracehint(
        "record", "--collector", "strace", "--", "true", cwd=tmp_path, env={"PATH": str(bare)}
    )
    assert done.returncode == 125
    assert "nstall the package strace" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_without_privileges_auto_takes_the_preload_library(tmp_path: Path) -> None:
    """As user nobody, with an interpreter and a copy of the code that this user may read."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if "preload" not in USABLE or python is None:
        pytest.skip("needs the library and a python3 that every user may run")
    import tracehint as package

    code = tmp_path / "code"
    shutil.copytree(Path(package.__file__).parent, code / "tracehint", symlinks=False)
    packages = sysconfig.get_path("purelib")
    work = tmp_path / "work"
    work.mkdir()
    for path in (tmp_path, *list(tmp_path.parents)[:-2]):
        path.chmod(0o755)
    work.chmod(0o777)

    def demote() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    env = {"PYTHONPATH": f"{code}:{packages}", "HOME": str(work), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", "tracehint", "record", "-o", "r.trace", "--", "sh", "-c", "id -u"]
    done = subprocess.run(
        command,
        cwd=work,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        preexec_fn=demote,
        timeout=PATIENCE_S,
        check=False,
    )
    if "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("that python3 cannot load this environment's packages")
    assert (done.returncode, done.stdout) == (0, "65534\n"), done.stderr
    assert "collector preload" in done.stderr
    assert "not ebpf" in done.stderr  # and the reason
    assert read_bundle(work / "r.trace").manifest.collector == "preload"


PAIRS = [pytest.param(a, b, marks=[full] * (a != b != "strace")) for a in USABLE for b in USABLE]


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_a_recording_inside_a_recording_is_not_doubled(
    tmp_path: Path, outer: str, inner: str
) -> None:
    command = ("sh", "-c", "echo hi > f; exit 4")
    words = record_words(*command, collector=inner, to="inner.trace", options="")
    done = record(*TRACEHINT, *words, collector=outer, to="outer.trace", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "already recorded" in done.stderr
    assert not (tmp_path / "inner.trace").exists()
    argvs = [
        p["argv"] for p in read_bundle(tmp_path / "outer.trace").tables["processes"].to_pylist()
    ]
    assert [b"sh", b"-c", b"echo hi > f; exit 4"] in argvs


def test_the_mark_of_another_recording_does_not_stop_this_one(tmp_path: Path) -> None:
    """Batch systems propagate the environment to nodes where no recorder runs."""
    for mark in ("other-boot:1:1", "nonsense", f"{_boot()}:{_namespace()}:999999"):
        done = record(
            "true",
            collector=ONE[0],
            to="r.trace",
            options="--quiet --force",
            cwd=tmp_path,
            env={"TRACEHINT_RECORDING": mark},
        )
        assert done.returncode == 0
        assert (tmp_path / "r.trace" / "manifest.json").exists()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


@pytest.mark.parametrize("collector", USABLE)
def test_secrets_are_redacted(tmp_path: Path, collector: str) -> None:
    secret = "hunter2SECRET"
    run = ["env", f"DB_PASSWORD={secret}", "sh", "-c", f"true --token {secret}", "x"]
    done = record(*run, collector=collector, to="r.trace", cwd=tmp_path)
    assert done.returncode == 0
    for path in (tmp_path / "r.trace").rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path
    bundle = read_bundle(tmp_path / "r.trace")
    assert secret not in json.dumps(
        [p["argv"] for p in bundle.tables["processes"].to_pylist()], default=repr
    )
    assert "<redacted>" in " ".join(bundle.manifest.command)
    assert bundle.manifest.redacted_args > 0
    kept = record(
        *run, collector=collector, to="k.trace", options="--quiet --keep-args", cwd=tmp_path
    )
    assert kept.returncode == 0
    assert secret in " ".join(read_bundle(tmp_path / "k.trace").manifest.command)


def test_bundle_directory_and_host_from_the_outside(tmp_path: Path) -> None:
    outside = ("--host-id", "node7/x", "--data-root", "data")
    done = tracehint(
        "record", "--quiet", "--collector", ONE[0], *outside, "--", "true", cwd=tmp_path,
        env={"TRACEHINT_BUNDLE_DIR": str(tmp_path / "bundles")},
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "bundles").iterdir()
    assert path.name.startswith("true.node7_x-")  # a modified name has a checksum
    bundle = read_bundle(path)
    assert bundle.manifest.hosts[0].name == "node7/x"
    assert set(bundle.tables["processes"]["host"].to_pylist()) == {"node7/x"}
    assert bundle.manifest.data_roots == [str(tmp_path / "data")]


def test_a_process_that_outlives_the_command_is_not_stopped(tmp_path: Path) -> None:
    if "strace" not in USABLE:
        pytest.skip("strace cannot run here")
    late = "while [ ! -e go ]; do sleep 0.1; done; echo late > late"
    work = f"({late}) > /dev/null 2>&1 & echo started > begun"
    lingers = "--quiet --option linger=300"
    words = record_words("sh", "-c", work, collector="strace", to="r.trace", options=lingers)
    done = subprocess.run(  # to a file: strace stays with the process and keeps a pipe open
        [*TRACEHINT, *words], cwd=tmp_path, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, (tmp_path / "begun").read_text()) == (0, "started\n")
    assert not (tmp_path / "late").exists()  # the recorder did not wait for it
    bundle = read_bundle(tmp_path / "r.trace")
    assert "outliving_processes" in bundle.tables["losses"]["kind"].to_pylist()
    assert None in [p["end_ns"] for p in bundle.tables["processes"].to_pylist()]
    (tmp_path / "go").touch()
    until(lambda: (tmp_path / "late").exists() and (tmp_path / "late").read_text(), "it goes on")
    assert (tmp_path / "late").read_text() == "late\n"


def test_processes_that_outlive_the_command_may_be_waited_for(tmp_path: Path) -> None:
    if "strace" not in USABLE:
        pytest.skip("strace cannot run here")
    done = record(
        "sh",
        "-c",
        "(sleep 2.5; echo late > late) & echo started",
        collector="strace",
        to="r.trace",
        options="--quiet --option linger=20000",
        cwd=tmp_path,
    )
    assert done.returncode == 0
    bundle = read_bundle(tmp_path / "r.trace")
    assert bundle.manifest.notes == []
    paths = [r["path"] for r in bundle.tables["opens"].to_pylist() if r["write_bytes"]]
    assert os.fsencode(tmp_path / "late") in paths


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    for text in ("linger", "linger=soon"):
        done = tracehint(
            "record", "--collector", "strace", "--option", text, "--", "touch", "ran", cwd=tmp_path
        )
        assert done.returncode == 125
        assert "linger" in done.stderr
    assert not (tmp_path / "ran").exists()


def _written_whole(folder: Path) -> bool:
    """Whether the strace output of a killed recorder contains both files of the command."""
    done = tracehint("import", "r.trace", "-o", "again.trace", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    opens = read_bundle(folder / "again.trace").tables["opens"].to_pylist()
    wanted = {os.fsencode(folder / "a"), os.fsencode(folder / "b")}
    return wanted <= {row["path"] for row in opens}


def test_a_killed_recorder_leaves_the_command_and_a_usable_bundle(tmp_path: Path) -> None:
    if "strace" not in USABLE:
        pytest.skip("strace cannot run here")
    work = "echo one > a; echo ready; read line; echo two > b; echo done-anyway"
    words = ["record", "--quiet", "--collector", "strace", "-o", "r.trace", "--", "sh", "-c"]
    with subprocess.Popen(
        [*TRACEHINT, *words, work],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.wait(PATIENCE_S)
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done-anyway\n"  # the command continued
        assert process.stderr.read() == ""  # strace did not write to its stderr
    bundle = read_bundle(tmp_path / "r.trace")
    assert not bundle.manifest.complete
    assert any("was killed" in note for note in bundle.manifest.notes)

    until(partial(_written_whole, tmp_path), "strace has written all", every_s=0.5)


def test_every_collector_answers_its_check() -> None:
    for name in COLLECTORS:
        found = check(name)
        assert found.reason
        assert found.usable or found.remedy


@pytest.mark.skipif(len(USABLE) < 2, reason="needs eBPF and strace")
def test_a_kernel_that_refuses_the_tracer_only_at_the_start_leads_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Loading is not tested before a run: a seccomp filter is detected only at the start."""
    from tracehint.cli import main

    loader = tmp_path / "loader"
    loader.write_text(f'#!/bin/sh\n[ "$*" = --version ] && echo {VERSION}\n')
    loader.chmod(0o755)
    monkeypatch.setattr("tracehint.collectors.ebpf.collector.LOADER", loader)
    bundle = tmp_path / "r.trace"
    arguments = ["record", "-o", str(bundle), "--", "sh", "-c", "echo data >out; exit 5"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["tracehint", *arguments])
    assert main() == 5
    told = capfd.readouterr().err
    following = next(name for name in ("preload", "strace-light", "strace") if name in USABLE)
    assert f"collector {following}" in told
    assert "not ebpf: the eBPF tracer could not start" in told
    assert read_bundle(bundle).manifest.collector == following
    arguments[1:1] = ["--collector", "ebpf", "--force"]
    monkeypatch.setattr(sys, "argv", ["tracehint", *arguments])
    assert main() == 125
    assert "nothing was run" in capfd.readouterr().err


@pytest.mark.parametrize("collector", ["ebpf", "preload", "strace"])
@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_the_exit_code_is_the_command_s_whatever_happens_to_files(
    tmp_path: Path, collector: str, end: str
) -> None:
    """The bundle's directory is deleted while the command runs."""
    if not check(collector, COLLECTORS[collector].before_run).usable:
        pytest.skip(f"{collector} cannot run here")
    words = ("record", "--collector", collector, "-o", "r.trace", "--", "sh", "-c")
    done = tracehint(*words, f"rm -rf r.trace; {end}", cwd=tmp_path)
    assert done.returncode == (3 if end == "exit 3" else -9), done.stderr
    assert "r.trace" in done.stderr
    assert "nothing was run" not in done.stderr
