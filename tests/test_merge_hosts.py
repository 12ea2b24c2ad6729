"""Four hosts, simulated by network, mount and UTS namespaces over one shared directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import inside, tracehint
from tests.support.patience import PATIENCE_S
from tracehint.collectors import hostinfo
from tracehint.collectors.registry import check

HOSTS = ("node1", "node2", "node3", "node4")
USABLE = [name for name in ("ebpf", "strace") if check(name).usable]


def _namespaces() -> bool:
    probe = ["unshare", "-m", "-u", "-n", "true"]
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run(probe, check=False, capture_output=True).returncode
    )


needs_namespaces = pytest.mark.skipif(not _namespaces(), reason="cannot make namespaces")


def on_host(folder: Path, host: str, collector: str, work: str) -> None:
    """Record `work` on a simulated host, where the store is mounted at its own place, mnt-HOST."""
    mount = folder / f"mnt-{host}"
    mount.mkdir()
    script = 'set -e; hostname "$1"; mount --bind "$2" "$3"; cd "$3"; shift 3; exec "$@"'
    command = [
        "unshare", "-m", "-u", "-n", "sh", "-c", script, "sh", host, folder / "store", mount,
        sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", collector, "--",
        "sh", "-c", work,
    ]  # fmt: skip  # a table
    env = {
        **os.environ,
        "TRACEHINT_BUNDLE_DIR": str(folder / "bundles"),
        "TRACEHINT_SHARED": str(mount),
    }
    done = subprocess.run(
        command, env=env, check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_namespaces
@pytest.mark.parametrize("collector", USABLE)
def test_four_hosts_are_one_run(tmp_path: Path, collector: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "seed").write_bytes(b"s" * 1009)
    before = "seed"
    for number, host in enumerate(HOSTS):
        work = f"cat {before} {before} > part{number}; rm -f /tmp/none; cat seed > own-{host}"
        on_host(tmp_path, host, collector, work)
        before = f"part{number}"
    bundles = sorted((tmp_path / "bundles").iterdir())
    assert [b.name for b in bundles] == [f"sh.{h}.trace" for h in HOSTS]
    done = tracehint("merge", *bundles, "-o", "run.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = inside("analyze", "run.trace", "--format", "json", cwd=tmp_path)
    data = json.loads(result.stdout)
    assert sorted(data["run"]["hosts"]) == list(HOSTS)
    host_of = {t["id"]: t["host"] for t in data["tasks"]}
    name = {f["id"]: os.path.basename(f["path"]) for f in data["files"]}  # noqa: PTH119
    across = {
        (host_of[e["producer"]], name[e["file"]], host_of[e["consumer"]], e["bytes"])
        for e in data["edges"]
        if host_of[e["producer"]] != host_of[e["consumer"]]
    }
    assert across == {
        ("node1", "part0", "node2", 2 * 1009),
        ("node2", "part1", "node3", 4 * 1009),
        ("node3", "part2", "node4", 8 * 1009),
    }
    (seed,) = [f for f in data["files"] if name[f["id"]] == "seed"]
    assert {host_of[c["task"]] for c in seed["consumers"]} == set(HOSTS)


def test_a_part_of_a_file_system_has_a_source_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "22 21 0:40 / /net rw - nfs4 server:/x rw\n"
        "23 21 0:40 /project /work rw,nosuid - nfs4 server:/x rw\n"
        "24 21 8:1 /a\\040b /sp\\040ace rw shared:7 master:1 - ext4 /dev/sda1 rw\n"
    )
    monkeypatch.setattr(Path, "read_bytes", lambda _: table.encode())
    found = {m["path"]: m["source"] for m in hostinfo.mounts()}
    assert found == {
        "/": "/dev/sda1",
        "/net": "server:/x",
        "/work": "server:/x[/project]",
        "/sp ace": "/dev/sda1[/a b]",
    }
    monkeypatch.setenv("TRACEHINT_SHARED", "/work:/data/set")
    shared = [m for m in hostinfo.mounts() if m.get("shared")]
    assert [(m["path"], m["source"]) for m in shared] == [
        ("/work", "server:/x[/project]"),
        ("/data/set", "/dev/sda1:/data/set"),
    ]
