"""Every command that reads a run: four times the tasks, at most 4.6 times the work (exponent 1.1).

Work is counted (tests/support/work.py), not timed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from datasets.synthetic import TASKS_PER_UNIT, write

from tests.support.cli import inside
from tests.support.joined import TASKS_PER_COPY, declared
from tests.support.wfinstances import data_folder
from tests.support.work import Counted, counter, rows_of
from tracehint.schemas.store import read_bundle

# quadratic growth in tasks takes sixteen times the work at all sizes
SIZES, REAL_SIZES, LARGE = (500, 2_000), (1_500, 6_000), (5_000, 20_000)
EXPONENT = 1.1

# `{run}` is the bundle, `{hints}` the rules learned from it.
COMMANDS = {
    "analyze": "analyze {run} --format json -o out --force",
    "hints": "hints {run} -o out --force",
    "score": "hints {run} --score {run}",
    "lint": "lint {run} -o out --force",
    "report": "report {run} -o out --force",
    "graph": "graph {run} -o out.dot --force",
    "diff": "diff {run} {run} -o out --force",
    "emit": "emit {hints} --store xattr --like {run} -o out --force",
    "anonymize": "anonymize {run} -o out.trace --force",
    "wfformat": "export {run} --to wfformat -o out --force",
    "prov": "export {run} --to prov -o out --force",
    "ro-crate": "export {run} --to ro-crate -o outdir --force",
    "perfetto": "export {run} --to perfetto -o out --force",
    "graphml": "export {run} --to graphml -o out --force",
    "parquet": "export {run} --to parquet -o outdir --force",
}
RECORDED = ("analyze", "report")  # all others query the same tables
REAL = ("lint", "report")


def _import(folder: Path, name: str) -> Path:
    done = inside("import", name, "-o", "run.trace", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run.trace"


def _declared(folder: Path, tasks: int) -> Path:
    (folder / "run.json").write_text(json.dumps(declared(tasks // TASKS_PER_COPY)))
    return _import(folder, "run.json")


def _recorded(folder: Path, tasks: int) -> Path:
    return write(folder / "run.trace", tasks // TASKS_PER_UNIT)


def _real(folder: Path, tasks: int) -> Path:
    where = data_folder()
    names = sorted(str(path) for path in where.glob("*-001.json*"))
    maker = [sys.executable, where / "make_ensemble.py", "--tasks", str(tasks), "-o", "run.json"]
    subprocess.run([*maker, *names], cwd=folder, check=True, capture_output=True)
    return _import(folder, "run.json")


MAKERS = {"declared": _declared, "recorded": _recorded, "real": _real}
KINDS = [
    *(("declared", name, SIZES) for name in COMMANDS),
    *(("recorded", name, SIZES) for name in RECORDED),
    *(("real", name, REAL_SIZES) for name in REAL),  # smaller sizes contain other workflows
]
CASES = [
    pytest.param(*row, id="-".join(map(str, row)), marks=[pytest.mark.full] * full)
    for kind, name, sizes in KINDS
    for full, row in [
        (kind == "real", (kind, name, sizes)),  # the same commands on the other runs
        (True, (kind, name, LARGE)),
    ]
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], dict[str, Path]]:
    @cache
    def made(kind: str, tasks: int) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp(kind)
        run = MAKERS[kind](folder, tasks)
        done = inside("hints", run, "-o", "hints.json", cwd=folder)
        assert done.returncode == 0, done.stderr
        return {"run": run, "hints": folder / "hints.json"}

    return made


@pytest.fixture(scope="module")
def counted() -> Iterator[Counted]:
    with counter() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "sizes"), CASES)
def test_work_grows_with_the_tasks(
    kind: str,
    name: str,
    sizes: tuple[int, int],
    runs: Callable[[str, int], dict[str, Path]],
    counted: Counted,
    tmp_path: Path,
) -> None:
    works, tasks = [], []
    for size in sizes:
        words = [word.format(**runs(kind, size)) for word in COMMANDS[name].split()]
        works.append(counted(words, tmp_path))
        tasks.append(_tasks(runs(kind, size)["run"]))
    small, large = works
    most = (tasks[1] / tasks[0]) ** EXPONENT
    assert large.calls <= most * small.calls
    assert large.rows <= most * small.rows
    assert large.peak <= most * small.peak


def _tasks(run: Path) -> int:
    tables = read_bundle(run).tables
    return int(max(tables[name].num_rows for name in ("declared_tasks", "processes")))


def test_nested_loops_count_as_pairs() -> None:
    import duckdb

    from tests.support.work import _Sql

    found = [0]
    con = _Sql(duckdb.connect(), found)
    con.execute("CREATE TABLE a AS SELECT 'x' || i AS p FROM range(300) t(i)")
    few = found[0]
    con.execute("SELECT count(*) FROM a JOIN a b ON starts_with(b.p, a.p || '/')")
    assert few < 2_000 and found[0] - few > 300 * 300
    assert rows_of({"intermediate_rows": 3}) == (3, 3)
