"""What `profile` loads while the command runs: all it needs, on idle processors or for a share of
their time, and the command's environment stays as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path

import pytest
from datasets.synthetic import write

from tests.support import cli
from tests.support.patience import PATIENCE_S
from tracehint.collectors.base import RecordRequest
from tracehint.collectors.session import child_environment
from tracehint.commands import _warming
from tracehint.commands._warming import idle_s, warmed
from tracehint.schemas.arrow import load_before_a_command

# after all modules are there, a profile loads these
LATE = """
import sys
from importlib import import_module
from pathlib import Path
from tracehint.commands.profile import show
from tracehint.commands._warming import modules
from tracehint.schemas.arrow import skip_pandas
skip_pandas()
for name in modules():
    import_module(name)
before = set(sys.modules)
show(Path(sys.argv[1]), force=True, quiet=False, cut={})
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {"numpy", "pyarrow", "duckdb", "rich", "tracehint"}


@pytest.mark.slow
def test_a_profile_loads_nothing_more(tmp_path: Path) -> None:
    bundle = write(tmp_path / "b.trace", 3)
    done = subprocess.run(
        [sys.executable, "-c", LATE, bundle], capture_output=True, text=True,
        timeout=PATIENCE_S, check=True, env=os.environ | {"TRACEHINT_CACHE": "off"},
    )  # fmt: skip  # a table
    late = [name for name in done.stdout.split() if name.split(".")[0] in HEAVY]
    assert late == []
    assert (tmp_path / "b.tracehint" / "report.html").exists()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are asked for, and no waiting."""
    found: list[str] = []
    monkeypatch.setattr(_warming, "import_module", found.append)
    monkeypatch.setattr(_warming, "modules", lambda: iter(["one", "two"]))
    for name in ("FIRST_S", "EVERY_S", "LOOK_S"):
        monkeypatch.setattr(_warming, name, 0.001)
    return found


def test_on_idle_processors(loaded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count(step=1000)
    monkeypatch.setattr(_warming, "idle_s", lambda: float(next(ticks)))
    _warming._load(threading.Event())
    assert loaded == ["one", "two"]


@pytest.mark.parametrize(("share", "wanted"), [(0.0, []), (1000.0, ["one", "two"])])
def test_where_none_is_idle_its_share(
    share: float, wanted: list[str], loaded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_warming, "SHARE", share)
    over, looks = threading.Event(), repeat(7.0, 21)

    def idle() -> float:
        """The same at each of twenty looks."""
        found = next(looks, None)
        if found is None:
            over.set()
        return 7.0

    monkeypatch.setattr(_warming, "idle_s", idle)
    _warming._load(over)
    assert loaded == wanted


@pytest.mark.usefixtures("loaded")
def test_the_block_ends_when_the_command_does() -> None:
    before = threading.active_count()
    with warmed():
        pass
    assert threading.active_count() == before


def test_idle_time_is_that_of_the_processors_we_may_use() -> None:
    assert 0 < idle_s() < 1e10


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A variable that loading numpy sets."""
    name = "OPENBLAS_NUM_THREADS"
    monkeypatch.delenv(name, raising=False)
    yield name
    monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("before", [None, "3"])
def test_what_is_loaded_before_a_command_leaves_no_variable(
    before: str | None, blas: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before is not None:
        monkeypatch.setenv(blas, before)
    load_before_a_command()
    assert os.environ.get(blas) == before


@pytest.mark.slow
def test_commands_that_learn_load_no_pandas(tmp_path: Path) -> None:
    """Where it is installed, it takes longer than all the rest."""
    run = ("run", "--collector", "strace", "--", "sh", "-c", "echo 1 >a; cat a >b")
    assert cli.tracehint(*run, cwd=tmp_path).returncode == 0
    for words in (run, ("predict", ".tracehint/runs/0001.trace", "--cluster", "moosefs")):
        said = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "tracehint", *words],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip  # a table
        assert "pyarrow" in said
        assert "pandas.core" not in said


def test_a_command_does_not_see_what_loading_changed(tmp_path: Path, blas: str) -> None:
    request = RecordRequest(("true",), tmp_path / "b")
    os.environ[blas] = "1"
    assert blas not in child_environment(request)
    assert blas not in child_environment(replace(request, quiet=True))
