"""eBPF and the preload library record the same bytes per process and file of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import record
from tracehint.collectors.both import _sum_bytes, differences
from tracehint.collectors.registry import check
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.ebpf, pytest.mark.slow]

SCRIPT = """
set -e
head -c 300000 /dev/urandom | base64 > data.txt
sort --parallel=4 -S 1M data.txt > sorted.txt
tar czf all.tgz data.txt sorted.txt
mkdir out && tar xzf all.tgz -C out
cp -r out copy && mv copy moved && rm -r out
seq 12 | xargs -P4 -I{} sh -c 'head -c {}000 data.txt > part{}.txt'
dd if=data.txt of=blocks bs=7k conv=fsync 2>/dev/null
split -n 4 data.txt piece_ && cat piece_* | cmp - data.txt
sed -i s/a/b/ part1.txt
env -i /bin/sh -c '/bin/cat part*.txt >> appended; /bin/cat part2.txt >> appended'
"$PYTHON" - <<'END'
import multiprocessing, os, threading
def work(i):
    with open(f"worker{i}", "wb") as stream:
        for k in range(50):
            stream.write(bytes(1000 + k))
def part(fd, i):
    for at in range(i * 10000, (i + 1) * 10000, 100):
        os.pread(fd, 100, at)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.map(work, range(6))
    fd = os.open("data.txt", os.O_RDONLY)
    threads = [threading.Thread(target=part, args=(fd, i)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for i in range(3):
        os.waitpid(os.posix_spawn("/bin/cp", ["cp", "data.txt", f"spawned{i}"], {}), 0)
END
"""


def test_one_run_has_the_same_bytes_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    found = check("all")
    if not found.usable:
        pytest.skip(found.reason)
    monkeypatch.setenv("PYTHON", sys.executable)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "run.sh").write_text(SCRIPT)
    work = tmp_path / "work"
    done = record("sh", "run.sh", collector="all", to="../run.trace", options="", cwd=work)
    assert done.returncode == 0, done.stderr
    ebpf = read_bundle(tmp_path / "run.trace")
    preload = read_bundle(tmp_path / "run.preload.trace")
    assert differences(ebpf, preload).to_pylist() == []
    assert "tracehint: 0 differences" in done.stderr
    assert len(_sum_bytes(preload)) > 60
    ends = [
        {(r["pid"], r["exit_code"], r["exit_signal"]) for r in b.tables["processes"].to_pylist()}
        for b in (ebpf, preload)
    ]
    assert ends[0] == ends[1]
    sizes = [
        {
            (n["path"], f["size_bytes"], f["deleted"])
            for f in b.tables["files"].to_pylist()
            for n in b.tables["names"].to_pylist()
            if n["file"] == f["file"] and n["path"].startswith(bytes(tmp_path / "work"))
        }
        for b in (ebpf, preload)
    ]
    assert sizes[0] == sizes[1]
