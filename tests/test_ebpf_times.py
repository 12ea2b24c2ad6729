"""End times of runs of accesses, relative to what the same process did before and after."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.ebpf import require_ebpf

pytestmark = pytest.mark.ebpf

# Concatenates small files as GNU parallel does: reads of other files interrupt one run of writes,
# all of it within a few ticks of the kernel's clock.
COLLECT = """
import os, sys
for n in range(30):
    for part in range(4):
        with open(f"part{n}.{part}", "wb", 0) as stream:
            stream.write(b"x" * 5000)
    out = os.open(f"all{n}", os.O_WRONLY | os.O_CREAT, 0o600)
    for part in range(4):
        with open(f"part{n}.{part}", "rb", 0) as stream:
            text = stream.read(10000)
        for _ in range(3):
            os.write(out, text)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    os.write(out, b"end")
    with open(f"after{n}", "wb", 0) as stream:
        stream.write(b"x")
    os.close(out)
"""


def recorded(folder: Path) -> list[dict[str, Any]]:
    """Record the script; return its extents with the paths of their files."""
    from tracehint.collectors.base import RecordRequest
    from tracehint.collectors.ebpf import EbpfCollector
    from tracehint.schemas.store import read_bundle

    require_ebpf()
    script = folder / "collect.py"
    script.write_text(COLLECT)
    command = ("sh", "-c", f"cd {folder} && python3 -I -S {script}")
    EbpfCollector().record(RecordRequest(command, folder / "run.trace", quiet=True))
    tables = read_bundle(folder / "run.trace").tables
    paths = dict(zip(*(tables["opens"][c].to_pylist() for c in ("open", "path")), strict=True))
    rows = tables["extents"].to_pylist()
    return [{**row, "path": paths[row["open"]].decode()} for row in rows if row["open"] in paths]


def test_the_end_of_a_run_is_on_the_right_side_of_everything_else(tmp_path: Path) -> None:
    rows = recorded(tmp_path)
    by_name = {(Path(r["path"]).name, r["op"]): r for r in rows if r["path"].startswith("/")}
    for n in range(30):
        out = by_name[f"all{n}", "write"]
        assert out["ops"] == 13
        reads = [by_name[f"part{n}.{part}", "read"] for part in range(4)]
        before = [r["first_ns"] for r in reads]
        assert all(at < out["last_ns"] for at in before), n
        assert out["last_ns"] <= by_name[f"after{n}", "write"]["first_ns"], n
        for earlier, later in pairwise(reads):
            assert earlier["last_ns"] <= later["first_ns"], n


def test_the_last_use_of_a_pipe_is_not_its_first(tmp_path: Path) -> None:
    from tracehint.collectors.base import RecordRequest
    from tracehint.collectors.ebpf import EbpfCollector
    from tracehint.schemas.store import read_bundle

    require_ebpf()
    command = ("sh", "-c", "{ echo a; sleep 0.2; echo b; } | cat")
    EbpfCollector().record(RecordRequest(command, tmp_path / "run.trace", quiet=True))
    opens = read_bundle(tmp_path / "run.trace").tables["opens"].to_pylist()
    spans = [o["last_ns"] - o["first_ns"] for o in opens if o["via"] == "pipe" and o["write_ops"]]
    assert max(spans) >= 150_000_000
