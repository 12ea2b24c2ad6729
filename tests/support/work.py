"""How much work a command does, counted: no clock, so the load of the machine does not matter.

    work = counted(["lint", "run.trace"], tmp_path)
    work.calls    Python and C functions called by our Python code
    work.rows     rows that DuckDB's operators gave, and pairs that its nested loops compared
    work.peak     bytes of memory at most (of the whole process)

The command runs in a process of its own: `python -m tests.support.work OUT ARGUMENT...`.
"""

from __future__ import annotations

import cProfile
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# Joins that compare every row of one side with every row of the other.
_PAIRS = ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT")
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Work:
    """What one command took."""

    calls: int
    rows: int
    peak: int


def counted(command: Sequence[str | Path], cwd: Path, ok: Sequence[int] = (0, 1)) -> Work:
    """The work of `tracehint COMMAND...`; its exit code is one of `ok`."""
    out = cwd / "work.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.work", out, *map(str, command)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in ok, f"{command}: {done.returncode}: {done.stderr[-2000:]}"
    return Work(**json.loads(out.read_text()))


class _Sql:
    """A connection that adds up what each statement did; `found` has the sum in one place."""

    def __init__(self, con: Any, found: list[int]) -> None:
        self._con, self._found = con, found
        con.execute("PRAGMA enable_profiling='no_output'")

    def execute(self, sql: str, *parameters: Any) -> Any:
        result = None
        for statement in self._con.extract_statements(sql):
            result = self._con.execute(statement, *parameters)
            self._add()
        return result

    def sql(self, sql: str, *parameters: Any) -> Any:
        return _Lazy(self._con.sql(sql, *parameters), self)

    def _add(self) -> None:
        text = self._con.get_profiling_information(format="json")
        roots = json.loads(text).get("operator", []) if text else []
        self._found[0] += sum(rows_of(root)[1] for root in roots)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)


class _Lazy:
    """A relation: it runs when its rows are asked for."""

    def __init__(self, relation: Any, con: _Sql) -> None:
        self._relation, self._sql = relation, con

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._relation, name)
        if not callable(attribute):
            return attribute

        def run(*values: Any, **more: Any) -> Any:
            result = attribute(*values, **more)
            self._sql._add()
            return result

        return run


def rows_of(node: dict[str, Any]) -> tuple[int, int]:
    """(rows that an operator of a profile gives to the next one, rows and pairs of all below)."""
    below = [rows_of(child) for child in node.get("children", ())]
    given = int(node.get("intermediate_rows", 0))
    pairs = math.prod(rows for rows, _ in below) if node.get("type") in _PAIRS else 0
    scanned = int(node.get("rows_scanned", 0))
    return given, given + scanned + pairs + sum(total for _, total in below)


def _main(out: str, arguments: list[str]) -> int:
    import duckdb

    from tracehint.cli import main

    found = [0]
    connect = duckdb.connect
    duckdb.connect = lambda *a, **k: _Sql(connect(*a, **k), found)  # type: ignore[assignment]
    profile = cProfile.Profile()
    code = profile.runcall(main, arguments)
    calls = sum(entry.callcount for entry in profile.getstats())
    Path(out).write_text(json.dumps(asdict(Work(calls, found[0], peak()))))
    return code


def peak() -> int:
    """Most bytes of this process; ru_maxrss would count those of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
