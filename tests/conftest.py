"""Rules for the whole test suite."""

from __future__ import annotations

import atexit
import compileall
import fcntl
import gc
import inspect
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import forked
from tests.support.built import BUILT
from tests.support.scratch import PACKAGES, ROOT

if TYPE_CHECKING:
    from tests.support.first_byte import Watch
    from tests.support.flow_cut import Case

# Markers whose tests must run on the continuous integration machine: a skip there is a failure.
MUST_RUN_IN_CI = ("ebpf", "store", "engine", "libc")
# Typical duration of a test with this marker.
SECONDS = {"store": 10, "engine": 5, "libc": 10, "slow": 1}
# Durations of test files that their markers under- or overestimate, so that long files start first.
LONG = {
    "test_spark.py": 245,
    "test_run_slurm.py": 170,
    "test_run_moosefs.py": 145,
    "test_run_adversity.py": 145,
    "test_report.py": 135,
    "test_run_loop.py": 120,
    "test_lint_judged.py": 120,
    "test_probe.py": 95,
    "test_docs.py": 95,
    "test_preload_libc.py": 90,
    "test_real.py": 80,
    "test_printed_commands.py": 75,
    "test_other_users.py": 70,
    "test_plan.py": 70,
    "test_packaging.py": 65,
    "test_scale.py": 55,
    "test_lint_rules.py": 55,
    "test_node_recorder.py": 55,
    "test_run_submitted.py": 55,
    "test_recording_traffic.py": 55,
    "test_plan_emit_run.py": 50,
    "test_preload_attacks.py": 50,
    "test_record_unlucky.py": 45,
    "test_created_engines.py": 45,
    "test_fuzz.py": 40,
    "test_darshan.py": 40,
    "test_run_places.py": 40,
    "test_slurm.py": 40,
    "test_losses_stated.py": 40,
    "test_gain.py": 40,
    "test_run_engine_logs.py": 35,
    "test_kept_decision.py": 35,
    "test_preload_record.py": 35,
    "test_totals.py": 35,
    "test_work_queue.py": 35,
    "test_first_run.py": 35,
    "test_papers_metadata.py": 35,
    "test_record.py": 35,
    "test_shared_analysis.py": 30,
    "test_interrupts.py": 30,
    "test_emit_snakemake.py": 30,
    "test_emitted_forgotten.py": 28,
    "test_moosefs.py": 28,
    "test_confuga.py": 27,
    "test_emit_makeflow_after.py": 27,
    "test_snakemake_matrix.py": 27,
    "test_preload_coverage.py": 26,
    "test_transfer_engines.py": 25,
    "test_analyze_resources.py": 25,
    "test_started_elsewhere.py": 25,
    "test_docs_scratch.py": 25,
    "test_progress.py": 24,
    "test_slurm_engines.py": 22,
    "test_created_programs.py": 21,
    "test_creation_table.py": 21,
    "test_output_places.py": 20,
}


def pytest_configure(config: pytest.Config) -> None:
    """Turn off the analysis cache between tests; keep compiled modules, also with
    PYTHONDONTWRITEBYTECODE, because thousands of processes import them; and restore the signals
    that a shell ignores in background processes, because tests send them."""
    os.environ["TRACEHINT_CACHE"] = "off"
    sys.dont_write_bytecode = False
    if not hasattr(config, "workerinput"):
        for package in PACKAGES:
            compileall.compile_dir(ROOT / package, quiet=2)
    _hypothesis()
    _python_itself()
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    forked.usual()


def _hypothesis() -> None:
    """Disable deadlines: the machine is shared, so an example's duration proves nothing. Imported
    here so that pytest's rewritten Hypothesis modules are cached too."""
    from hypothesis import settings

    settings.register_profile("project", deadline=None, max_examples=40)
    settings.load_profile("project")


@pytest.fixture(autouse=True, scope="module")
def _environment_of_file() -> Iterator[None]:
    """Undo the environment changes of a file's fixtures before the next file."""
    with _environment_kept():
        yield


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Undo the environment changes of a command that a test runs inside its own process."""
    with _environment_kept():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Undo the environment changes of a fixture that returns and so has no teardown, also if it has
    a wider scope and runs before the fixtures above."""
    if inspect.isgeneratorfunction(fixturedef.func) or fixturedef.scope == "function":
        yield
        return
    with _environment_kept():
        yield


@contextmanager
def _environment_kept() -> Iterator[None]:
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


def _python_itself() -> None:
    """Put the interpreter first on PATH: a version manager's `python3` may be a script that starts
    a dozen processes, which would be recorded with every task of every workflow."""
    found = shutil.which("python3")
    if found and Path(found).read_bytes()[:2] == b"#!":
        folder = Path(sys.executable).resolve().parent
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return three workers per core, as stores and engines mostly wait; one for quick tests."""
    cores = min(len(os.sched_getaffinity(0)), 4)
    return cores if "not slow" in config.option.markexpr else 3 * cores


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Set for a worker whether the tests were never compiled."""
    node.workerinput["fresh"] = not any((Path(__file__).parent / "__pycache__").glob("test_*"))


@pytest.hookimpl(hookwrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Freeze modules and test items: a garbage collection that scans them takes a quarter of the
    time, and as much again later."""
    gc.disable()
    with _compiled(getattr(session.config, "workerinput", {})):
        yield
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries check at exit that their objects are gone
    gc.enable()


@contextmanager
def _compiled(worker: dict[str, Any]) -> Iterator[None]:
    """Let one worker compile the tests of a fresh tree while the others wait: compiling takes each
    worker longer than everything else before the first test."""
    if not worker.get("fresh"):
        yield
        return
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / ".compiling").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark `full` tests as slow too, for `-m "not slow"`, and sort long files first, so that no
    worker runs one alone at the end."""
    seconds = Counter[Path]()
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.slow)
        seconds[item.path] += next((s for m, s in SECONDS.items() if item.get_closest_marker(m)), 0)
    items.sort(key=lambda item: -LONG.get(item.path.name, seconds[item.path]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """With CI=true, turn the skip of a test that must run there into a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    must_run = any(item.get_closest_marker(name) for name in MUST_RUN_IN_CI)
    if report.skipped and must_run and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped with CI=true: {report.longrepr}"


@pytest.fixture(scope="session")
def wfinstances() -> Path:
    """The folder of WfFormat instances; tests skip without it."""
    folder = Path(os.environ.get("TRACEHINT_DATA") or "/nonexistent") / "wfinstances"
    if not folder.is_dir():
        pytest.skip("TRACEHINT_DATA does not name a folder with wfinstances/")
    return folder


@pytest.fixture(scope="session")
def demo() -> Path:
    """The bundled demo workflow."""
    return Path(__file__).parent.parent / "datasets" / "demo"


@pytest.fixture
def case() -> Case:
    """A run whose tasks are single processes."""
    from tests.support.flow_cut import Case

    return Case()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The preload library with its own observers."""
    from tests.support.preload import library_in

    with library_in(tmp_path_factory.mktemp("preload")) as built:
        yield built


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """tracehint-tag built from these sources, executable by every user, for scripts of `emit`."""
    from tests.support.tagger import build
    from tests.support.users import reachable

    with pytest.MonkeyPatch.context() as patch:
        program = build(reachable(tmp_path_factory.mktemp("tag")))
        patch.setenv("TRACEHINT_TAG", str(program))
        yield program


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A separate disk that can be watched."""
    from tests.support.first_byte import disk

    with disk(tmp_path_factory.mktemp("disk")) as mount:
        yield mount


@pytest.fixture(scope="module")
def watch(mounted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """The watcher of that disk."""
    from tests.support.first_byte import watched

    with watched(mounted, tmp_path_factory.mktemp("watch") / "log") as found:
        yield found
