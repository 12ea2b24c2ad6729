"""Work of a command, counted without a clock, so that the machine's load does not matter.

    with counter() as counted:
        work = counted(["lint", "run.trace"], tmp_path)
    work.calls    Python and C functions called by our Python code, after the libraries are loaded
    work.rows     rows that DuckDB's operators returned, and pairs that its nested loops compared
    work.peak     maximum memory in bytes (of the whole process)

Each command runs in a separate process, forked from one that has loaded the libraries.
"""

from __future__ import annotations

import cProfile
import json
import math
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

# Joins that compare every row of one side with every row of the other.
_PAIRS = ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT")
_ROOT = Path(__file__).parents[2]
_MOST_SECONDS = 900  # then SIGALRM ends a hanging command


@dataclass(frozen=True)
class Work:
    """Work of one command."""

    calls: int
    rows: int
    peak: int


Counted = Callable[[Sequence[str | Path], Path], Work]


@contextmanager
def counter() -> Iterator[Counted]:
    """Yield a function for the work of `tracehint COMMAND...` in a directory; exit code 0 or 1."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.work"],
        cwd=_ROOT, env={**os.environ, "PYTHONHASHSEED": "0"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip  # a table
        assert server.stdin and server.stdout

        def counted(command: Sequence[str | Path], cwd: Path) -> Work:
            said = cwd / "work.txt"
            request = [str(cwd), str(said), *map(str, command)]
            print(json.dumps(request), file=server.stdin, flush=True)
            code, values = json.loads(server.stdout.readline())
            assert code in (0, 1), f"{command}: {code}: {said.read_text()[-2000:]}"
            return Work(**values)

        yield counted


class _Sql:
    """A connection that adds the work of each statement to `found[0]`."""

    def __init__(self, con: Any, found: list[int]) -> None:
        self._con, self._found = con, found
        con.execute("PRAGMA enable_profiling='no_output'")

    def __enter__(self) -> _Sql:
        return self

    def __exit__(self, *_: object) -> None:
        self._con.close()

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
    """A relation: it runs when its rows are requested."""

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
    """Return (rows that an operator of a profile returns, rows and pairs of it and all below)."""
    below = [rows_of(child) for child in node.get("children", ())]
    given = int(node.get("intermediate_rows", 0))
    pairs = math.prod(rows for rows, _ in below) if node.get("type") in _PAIRS else 0
    scanned = int(node.get("rows_scanned", 0))
    return given, given + scanned + pairs + sum(total for _, total in below)


def _serve() -> None:
    """Fork a process per line of standard input: directory, file for its output, command."""
    from tests.support.fork_server import load

    load()
    for line in sys.stdin:
        cwd, said, *words = json.loads(line)
        ours, theirs = os.pipe()
        if not (pid := os.fork()):
            _become(Path(cwd), Path(said), words, theirs)
        os.close(theirs)
        with open(ours, encoding="ascii") as found:  # noqa: PTH123  # a descriptor
            values = json.loads(found.read() or "null")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps([code, values]), flush=True)


def _become(cwd: Path, said: Path, words: list[str], answer: int) -> NoReturn:
    code = 2
    try:
        signal.alarm(_MOST_SECONDS)
        os.chdir(cwd)
        with said.open("wb", 0) as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        code, work = _count(words)
        os.write(answer, json.dumps(asdict(work)).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _count(words: list[str]) -> tuple[int, Work]:
    import duckdb

    from tracehint.cli import main

    found = [0]
    connect = duckdb.connect
    duckdb.connect = lambda *a, **k: _Sql(connect(*a, **k), found)  # type: ignore[assignment]
    profile = cProfile.Profile()
    code = profile.runcall(main, words)
    calls = sum(entry.callcount for entry in profile.getstats())
    return code, Work(calls, found[0], peak())


def peak() -> int:
    """Return the peak memory of this process; ru_maxrss would include that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    _serve()
