"""Recording must not change the run: status, signals, output; and what it records of processes."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, record_words
from tests.support.ebpf import record, require_ebpf
from tests.support.patience import PATIENCE_S
from tracehint.collectors.ebpf import EbpfCollector
from tracehint.collectors.ebpf.collector import LOADER
from tracehint.errors import CollectorError
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.ebpf]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_ebpf()
    monkeypatch.chdir(tmp_path)


def loader(tmp_path: Path, *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run the loader itself with a fresh spool."""
    spool = tmp_path / "spool"
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir()
    return subprocess.run(
        [LOADER, "-o", spool, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        **more,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("code", [0, 1, 2, 77, 125, 126, 127, 255])
def test_exit_codes_pass_through(tmp_path: Path, code: int) -> None:
    done = loader(tmp_path, "--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stderr) == (code, "")


def test_command_not_found_and_not_executable(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    missing = loader(tmp_path, "--", "./missing")
    assert missing.returncode == 127
    assert "No such file" in missing.stderr
    refused = loader(tmp_path, "--", "./plain")
    assert refused.returncode == 126
    assert "Permission denied" in refused.stderr


def test_nothing_runs_when_recording_cannot_begin(tmp_path: Path) -> None:
    done = loader(tmp_path, "--processes", "0", "--", "touch", str(tmp_path / "ran"))
    assert done.returncode == 125
    assert not (tmp_path / "ran").exists()
    with pytest.raises(CollectorError, match="nothing was run"):
        record(tmp_path / "b.trace", "touch", tmp_path / "ran", processes="0")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "b.trace").exists()


def test_processes_are_described(tmp_path: Path) -> None:
    env = dict(os.environ, TRACEHINT_TASK="ta sk", PASSWORD_X="secret", MAKELEVEL="2")
    (tmp_path / "sub").mkdir()
    script = 'cd sub; (exit 3); /bin/echo "a b" --password=hunter2 >out'
    done = subprocess.run(
        [*TRACEHINT, *record_words("sh", "-c", script, collector="ebpf", to=tmp_path / "b.trace")],
        env=env,
        check=False,
    )
    assert done.returncode == 0
    bundle = read_bundle(tmp_path / "b.trace")
    root, *rest = bundle.tables["processes"].to_pylist()
    assert root["argv"][:2] == [b"sh", b"-c"]
    assert (root["parent"], root["prev"], root["cwd"]) == (None, None, bytes(tmp_path))
    assert root["exe"] == os.fsencode(os.path.realpath("/bin/sh"))
    assert {e["name"]: e["value"] for e in root["env"]} == {
        "TRACEHINT_TASK": b"ta sk",
        "MAKELEVEL": b"2",
    }
    sub = next(r for r in rest if r["exit_code"] == 3)
    assert (sub["argv"], sub["parent"], sub["cwd"]) == ([], root["proc"], bytes(tmp_path / "sub"))
    echo = next(r for r in rest if r["argv"])
    assert echo["argv"] == [b"/bin/echo", b"a b", b"--password=<redacted>"]
    assert bundle.manifest.redacted_args >= 1
    before = next(r for r in rest if r["proc"] == echo["prev"])
    assert before["pid"] == echo["pid"]
    assert before["end_ns"] == echo["start_ns"]
    written = [r for r in bundle.tables["opens"].to_pylist() if r["path"].endswith(b"/sub/out")]
    assert {r["proc"] for r in written if r["write_bytes"]} == {echo["proc"]}
    assert not (tmp_path / "b.trace" / SPOOL_DIR).exists()
    assert (tmp_path / "b.trace").stat().st_mode & 0o777 == 0o700


def test_long_arguments_are_cut_and_counted(tmp_path: Path) -> None:
    _, bundle = record(tmp_path / "b.trace", "true", *["x" * 997] * 97)
    (row,) = bundle.tables["processes"].to_pylist()
    assert sum(len(a) + 1 for a in row["argv"]) <= 32769
    assert row["argv"][1] == b"x" * 997
    kinds = {r["kind"]: r["count"] for r in bundle.tables["losses"].to_pylist()}
    assert kinds == {"argv_cut": 1}


def test_process_that_outlives_the_command_is_noted(tmp_path: Path) -> None:
    work = "sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >pid"
    result, bundle = record(tmp_path / "b.trace", "sh", "-c", work, linger="100")
    assert result.exit_status == 0
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # recording did not wait for it
    losses = bundle.tables["losses"].to_pylist()
    assert [(r["kind"], r["count"]) for r in losses] == [("outliving_processes", 1)]
    rows = {bytes(r["argv"][0]): r for r in bundle.tables["processes"].to_pylist() if r["argv"]}
    assert rows[b"sleep"]["end_ns"] is None


def test_two_recorders_at_once(tmp_path: Path) -> None:
    """Each recorder follows its own command only."""
    script = "for i in 1 2 3; do echo a >>a; sleep 0.2; done"
    words = record_words("sh", "-c", script, collector="ebpf", to=tmp_path / "a.trace")
    first = subprocess.Popen([*TRACEHINT, *words])
    record(tmp_path / "b.trace", "sh", "-c", "for i in 1 2 3; do echo b >>b; sleep 0.1; done")
    assert first.wait(timeout=PATIENCE_S) == 0
    for name in ("a", "b"):
        opens = read_bundle(tmp_path / f"{name}.trace").tables["opens"].to_pylist()
        here = {r["path"] for r in opens if r["path"].startswith(bytes(tmp_path))}
        assert here == {bytes(tmp_path / name)}


def test_without_capabilities_the_reason_is_said() -> None:
    if os.geteuid():
        pytest.skip("needs root to become another user")
    folder = Path(tempfile.mkdtemp())
    try:
        program = folder / "rec"
        shutil.copy(LOADER, program)
        folder.chmod(0o755)
        done = subprocess.run(
            [program, "--check"],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 125
    assert "cannot load the tracer" in done.stderr
    assert EbpfCollector().check().usable


def test_old_kernel_way_of_reading(tmp_path: Path) -> None:
    """The variant for kernels without bpf_rdonly_cast gives the same totals."""
    (tmp_path / "f").write_bytes(b"x" * 5003)
    for extra in ([], ["--no-direct"]):
        done = loader(tmp_path, *extra, "--", "sh", "-c", "cp f g")
        assert done.returncode == 0
        bundle = tmp_path / "b.trace"
        shutil.rmtree(bundle, ignore_errors=True)
        bundle.mkdir()
        shutil.move(tmp_path / "spool", bundle / SPOOL_DIR)
        (bundle / "manifest.json").write_text('{"format": "tracehint.bundle/1"}')
        opens = read_bundle(bundle).tables["opens"].to_pylist()
        found = {r["path"]: (r["read_bytes"], r["write_bytes"]) for r in opens}
        assert found[bytes(tmp_path / "f")] == (5003, 0)
        assert found[bytes(tmp_path / "g")] == (0, 5003)


def test_two_capabilities_suffice() -> None:
    """An ordinary user can record with them; set-uid programs are not followed."""
    if os.geteuid():
        pytest.skip("needs root to give capabilities and become another user")
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        program, spool = folder / "rec", folder / "b.trace" / SPOOL_DIR
        shutil.copy(LOADER, program)
        wanted = 1 << (38 - 32) | 1 << (39 - 32)  # CAP_PERFMON, CAP_BPF
        value = struct.pack("<5I", 0x02000001, 0, 0, wanted, 0)
        os.setxattr(program, "security.capability", value)
        setuid = folder / "setuid"
        shutil.copy(shutil.which("cat") or "/bin/cat", setuid)
        setuid.chmod(0o4755)
        spool.mkdir(parents=True)
        for path in (folder, folder / "b.trace", spool):
            os.chown(path, 65534, 65534)
        script = f"echo x >out; grep Cap /proc/self/status; {setuid} out; cp out out2"
        done = subprocess.run(
            [program, "-o", spool, "--", "sh", "-c", script], user=65534, group=65534,
            extra_groups=[], cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip  # a table
        assert (done.returncode, done.stderr) == (0, "")
        assert "CapEff:\t0000000000000000" in done.stdout  # the command does not get them
        (folder / "b.trace" / "manifest.json").write_text('{"format": "tracehint.bundle/1"}')
        bundle = read_bundle(folder / "b.trace")
        assert {(r["kind"], r["count"]) for r in bundle.tables["losses"].to_pylist()} == {
            ("credentials_exec", 1)
        }
        paths = {r["path"] for r in bundle.tables["opens"].to_pylist()}
        assert bytes(folder / "out2") in paths
        assert not any(
            b"setuid" in bytes(r["exe"] or b"") for r in bundle.tables["processes"].to_pylist()
        )
    finally:
        shutil.rmtree(folder)


def test_pid_namespaces(tmp_path: Path) -> None:
    """Processes have the pids of the recorder's pid namespace."""
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    spool = tmp_path / "b.trace" / SPOOL_DIR
    spool.mkdir(parents=True)
    (tmp_path / "b.trace" / "manifest.json").write_text('{"format": "tracehint.bundle/1"}')
    inside = ["unshare", "-pf", "--mount-proc"]
    done = subprocess.run(
        [*inside, LOADER, "-o", spool, "--", "sh", "-c", "echo $$ >pid; (cp pid copy); :"],
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0
    bundle = read_bundle(tmp_path / "b.trace")
    root = bundle.tables["processes"].to_pylist()[0]
    assert root["pid"] == int((tmp_path / "pid").read_text())
    _, bundle = record(tmp_path / "c.trace", *inside, "sh", "-c", "echo x >y")
    opens = bundle.tables["opens"].to_pylist()
    assert {r["write_bytes"] for r in opens if r["path"] == bytes(tmp_path / "y")} == {0, 2}
