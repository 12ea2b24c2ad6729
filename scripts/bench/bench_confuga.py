"""Bytes to the jobs' nodes on a real Confuga: 10 readers of one file, three runs each.

As root, with coop-computing-tools: python -m scripts.bench.bench_confuga [MIB]
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.support.confuga import Confuga, confuga

from tracehint.adapters.engines.confuga_emit import pull_threshold

READERS, PRIVATE, RUNS = 10, 30_000, 3


def _rules(more: str) -> str:
    return "".join(
        f"out/{i}.txt: in/{i}.bin db.bin{more}\n"
        f"\tmkdir -p out && sleep 2 && cat in/{i}.bin db.bin | wc -c > out/{i}.txt\n"
        for i in range(READERS)
    )


def _upload(store: Confuga, source: Path, where: str, rules: str) -> Path:
    for name in ("", "/in", "/out"):
        store.chirp("mkdir", where + name)
    for name in ("db.bin", "unused.bin", *(f"in/{i}.bin" for i in range(READERS))):
        store.put(source / name, f"{where}/{name}")
    own = store.own(where.strip("/"))
    (own / "w.makeflow").write_text(rules)
    return own


def main() -> int:
    """Print a table: declared lists, trimmed lists, and with the threshold."""
    size = int(sys.argv[1] if len(sys.argv) > 1 else 64) << 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        for i in range(READERS):
            (folder / "in" / f"{i}.bin").write_bytes(os.urandom(PRIVATE))
        for file in ("db.bin", "unused.bin"):
            (folder / file).write_bytes(os.urandom(size))
        threshold = pull_threshold([PRIVATE], [size])
        print("| columns: MB over the links | run 1 | run 2 | run 3 |\n|---|---|---|---|")
        (folder / "store").mkdir()
        with confuga(folder / "store") as store:
            for label, more, options in (
                ("an input declared that nobody reads", " unused.bin", ""),
                ("the lists of a recorded run", "", ""),
                ("and the threshold", "", f"&pull-threshold={threshold}"),
            ):
                store.head(options)
                where = f"/w{len(label)}"
                own = _upload(store, folder, where, _rules(more))
                moved = []
                for _ in range(RUNS):
                    before = store.bed.received()
                    store.makeflow(own, "w.makeflow", where)
                    moved.append(store.bed.received() - before)
                told = " | ".join(f"{bytes_ / 1e6:.0f}" for bytes_ in moved)
                print(f"| {label} | {told} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
