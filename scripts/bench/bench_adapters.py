"""What setting hints costs; `make bench-adapters`.

The tag helper for one task among 10,000 (whole process, median of 200), and `apply` of 10,000
hints on the file system of the temporary directory (whole command, median of 5), and `place` with
four inputs on a store that names their node in an attribute (whole command, median of 10).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.measure import Cost, median, run
from tests.support.hints import rule, save


def tag_helper(folder: Path) -> float:
    """Seconds per task."""
    from tests.support.tagger import target

    from tracehint.adapters.engines.tag_table import encode
    from tracehint.adapters.stores.registry import open_store

    helper = Path(__file__).parents[2] / "adapters" / "tag" / "bin" / "tracehint-tag"
    table = folder / "table"
    tasks = [[target(f"o{i}")] for i in range(10_000)]
    table.write_bytes(encode(tasks, open_store("xattr"))[0])
    times = []
    for i in range(200):
        start = time.perf_counter()
        subprocess.run([helper, "set", table, str(50 * i)], cwd=folder, check=False)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def place(folder: Path) -> Cost:
    """Cost of starting one task."""
    (folder / "hosts.toml").write_text('start = "here"\n[[host]]\nname = "node1"\nslots = 4\n')
    (folder / "store.toml").write_text('name = "near"\nlocation = "user.nodes"\n[hints]\n')
    inputs = [folder / f"in{k}" for k in range(4)]
    for path in inputs:
        path.write_bytes(b"x" * 100_000)
        os.setxattr(path, "user.nodes", b"node1")
    command: list[str | Path] = [
        sys.executable, "-m", "tracehint", "place", "--quiet", "--hosts", folder / "hosts.toml",
        "--store", folder / "store.toml", *inputs, "--", "true",
    ]  # fmt: skip  # a table
    return median([run(command) for _ in range(10)])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"tag helper: {tag_helper(folder) * 1e3:.2f} ms per task, process start included")
        data = folder / "data"
        data.mkdir()
        for i in range(10_000):
            (data / f"f{i}").touch()
        hints = save(folder, rule("f{n}", DP="local"))
        command: list[str | Path] = [
            sys.executable, "-m", "tracehint", "apply", hints, data, "--store", "xattr", "--quiet",
        ]  # fmt: skip  # a table
        if os.geteuid() == 0:
            command.append("--as-root")
        cost = median([run(command) for _ in range(5)])
        print(f"apply of 10,000 hints: {cost.wall_s:.2f} s wall, {cost.cpu_s:.2f} s CPU")
        cost = place(folder)
        print(f"place: {cost.wall_s:.2f} s wall, {cost.cpu_s:.2f} s CPU per task")


if __name__ == "__main__":
    main()
