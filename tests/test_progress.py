"""Progress of `profile`: on terminals only, in complete lines, invisible to the command."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S
from tracehint.progress import Counts, is_shown, progress

COLLECTORS = [pytest.param("strace"), pytest.param("ebpf", marks=pytest.mark.ebpf)]
WORK = (
    "for i in 1 2 3 4 5 6; do head -c 100000 /dev/zero > f$i; sleep 0.5; done; "
    "echo out; echo err >&2; exit 7"
)


def drain(terminal: int, seen: bytearray) -> None:
    """Read terminal output until the other end is closed."""
    try:
        while data := os.read(terminal, 4096):
            seen.extend(data)
    except OSError:
        pass


def on_terminal(folder: Path, *options: str, stdout: int | None = None) -> tuple[int, str, bytes]:
    """Run `profile` with stderr on a terminal; its stdout is a pipe or the given descriptor."""
    master, slave = pty.openpty()
    seen = bytearray()
    process = subprocess.Popen(
        [*TRACEHINT, "profile", *options, "--", "sh", "-c", WORK],
        cwd=folder, stderr=slave, stdout=slave if stdout == -1 else subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip  # a table
    reader = threading.Thread(target=drain, args=(master, seen))
    reader.start()
    out = process.communicate(timeout=PATIENCE_S)[0] or b""
    os.close(slave)
    reader.join(PATIENCE_S)
    os.close(master)
    return process.returncode, seen.decode("utf-8", "replace"), out


@pytest.mark.slow
@pytest.mark.parametrize("collector", COLLECTORS)
def test_progress_on_a_terminal(tmp_path: Path, collector: str) -> None:
    if collector == "ebpf":
        require_ebpf()
    code, terminal, out = on_terminal(tmp_path, "--collector", collector)
    assert (code, out) == (7, b"out\n")
    lines = [line for line in terminal.split("\r\n") if re.match(r"tracehint: \d+ s: ", line)]
    assert lines, terminal
    if collector == "ebpf":
        assert re.fullmatch(
            r"tracehint: \d+ s: \d+ programs? started, \d+ paths?, [\d.]+ \w+ read and written in"
            r" closed files",
            lines[0],
        ), lines
    else:
        assert re.fullmatch(r"tracehint: \d+ s: [\d.]+ \w+ of log", lines[0]), lines
    assert "err\r\n" in terminal
    assert "\r" not in terminal.replace("\r\n", "") and "\x1b[K" not in terminal


@pytest.mark.slow
def test_signals_still_reach_the_command(tmp_path: Path) -> None:
    """The progress thread must not receive signals that the waiting thread forwards."""
    master, slave = pty.openpty()
    work = "trap 'echo got; exit 9' TERM; touch ready; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        [*TRACEHINT, "profile", "--collector", "strace", "--", "sh", "-c", work],
        cwd=tmp_path, stderr=slave, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip  # a table
    try:
        seen = b""
        while b" of log" not in seen:  # until the thread runs
            seen += os.read(master, 4096)
        assert (tmp_path / "ready").exists()
        process.terminate()
        threading.Thread(target=drain, args=(master, bytearray()), daemon=True).start()
        out = process.communicate(timeout=PATIENCE_S)[0]
    finally:
        process.kill()
        os.close(slave)
    assert (process.returncode, out) == (9, b"got\n")


@pytest.mark.slow
@pytest.mark.parametrize(("options", "stdout"), [(["--quiet"], None), ([], -1)])
def test_no_progress_when_quiet_or_beside_the_commands_output(
    tmp_path: Path, options: list[str], stdout: int | None
) -> None:
    code, terminal, _ = on_terminal(tmp_path, "--collector", "strace", *options, stdout=stdout)
    assert code == 7
    assert not re.search(r"tracehint: \d+ s: ", terminal)


def test_not_without_a_terminal() -> None:
    code = "import sys; from tracehint.progress import is_shown; sys.exit(is_shown(quiet=False))"
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE).returncode == 0
    assert is_shown(quiet=True) is False


def test_a_damaged_spool_is_no_concern(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    before = threading.active_count()
    with progress(tmp_path, shown=True):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    with pytest.raises(OSError):
        Counts(tmp_path).text()


def test_each_look_reads_what_is_new(tmp_path: Path) -> None:
    import numpy as np

    from tracehint.schemas.recovery import SPOOL_DIR
    from tracehint.schemas.spool.layout import EPISODE, FILES, SNAPSHOT

    spool = tmp_path / SPOOL_DIR
    spool.mkdir()
    for name in FILES:
        (spool / f"{name}.bin").write_bytes(b"")
    counts = Counts(tmp_path)
    assert counts.text() == ""
    (spool / "execs.bin").write_bytes(np.zeros(2, FILES["execs"]).tobytes())
    rows = np.zeros(2, FILES["episodes"])
    rows["kind"], rows["read_bytes"] = [EPISODE, SNAPSHOT], 1024
    whole = rows.tobytes()
    with (spool / "episodes.bin").open("ab") as stream:
        stream.write(whole + whole[:10])  # the last record is incomplete
    assert counts.text() == "2 programs started, 0 paths, 1 KiB read and written in closed files"
    with (spool / "episodes.bin").open("ab") as stream:
        stream.write(whole[10:])
    assert counts.text() == "2 programs started, 0 paths, 2 KiB read and written in closed files"
    assert "lost" not in counts.text()
