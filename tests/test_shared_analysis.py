"""One analysis serves all commands: cached by content and options, trusted only if it is ours."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, inside
from tests.support.joined import declared
from tracehint.analyzer import cache
from tracehint.analyzer.cache import Shared, analysis_of, key_of
from tracehint.analyzer.model import Options
from tracehint.analyzer.output.json import to_json
from tracehint.errors import TracehintError, UsageError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle used by all tests."""
    folder = tmp_path_factory.mktemp("imported")
    (folder / "run.json").write_text(json.dumps(declared(1)))
    assert inside("import", "run.json", "-o", "run.trace", cwd=folder).returncode == 0
    return folder / "run.trace"


@pytest.fixture
def run(imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the bundle; analyses are cached below `tmp_path/cache`."""
    monkeypatch.setenv("TRACEHINT_CACHE", "on")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(imported, tmp_path / "run.trace"))


def found(run: Path, options: Options | None = None) -> Shared:
    return analysis_of(str(run), options or Options())


def kept(run: Path) -> list[Path]:
    return sorted((run.parent / "cache/tracehint/analyses").iterdir())


def test_the_second_command_does_not_analyze_and_says_the_same(run: Path) -> None:
    first, second = found(run), found(run)
    assert (first.kept, second.kept) == (False, True)
    assert first.analysis.tables() == second.analysis.tables()
    assert first.analysis.proc_task == second.analysis.proc_task
    assert first.analysis.declared_task == second.analysis.declared_task
    assert first.analysis.run == second.analysis.run
    assert first.analysis.options == second.analysis.options
    assert to_json(first.analysis) == to_json(second.analysis)
    (file,) = kept(run)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


COMMANDS = {
    "analyze": ["analyze", "run.trace", "--format", "json"],
    "hints": ["hints", "run.trace", "--format", "json"],
    "lint": ["lint", "run.trace", "--format", "json"],
    "report": ["report", "run.trace", "-o", "-"],
    "graph": ["graph", "run.trace", "--format", "dot"],
    "diff": ["diff", "run.trace", "run.trace", "--format", "json"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_the_same_with_and_without(
    run: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    answers = []
    for setting in ("off", "on", "on"):
        monkeypatch.setenv("TRACEHINT_CACHE", setting)
        answers.append(inside(*COMMANDS[name], cwd=run.parent))
    assert len(kept(run)) == 1
    assert answers[0].stdout
    assert {(a.returncode, a.stdout) for a in answers} == {
        (answers[0].returncode, answers[0].stdout)
    }


def test_off_keeps_and_uses_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEHINT_CACHE", "off")
    assert not found(run).kept
    assert not (run.parent / "cache").exists()
    monkeypatch.setenv("TRACEHINT_CACHE", "maybe")
    with pytest.raises(UsageError, match="neither on nor off"):
        found(run)


OTHERS = {
    "nodes": Options(nodes=7),
    "placement": Options(default_placement="local"),
    "whole": Options(whole=("make",)),
    "threshold": Options(peek_bytes=1),
    "sites": Options(sites=(("*", "a"),)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_options_are_another_analysis(run: Path, name: str) -> None:
    found(run)
    assert not found(run, OTHERS[name]).kept
    assert found(run, OTHERS[name]).kept
    assert found(run).kept


def parquet(run: Path, table: str = "declared_io") -> Path:
    return sorted((run / table).glob("host=*/*.parquet"))[0]


def same_size_and_time(run: Path) -> None:
    """Change bytes of the bundle, but neither size nor modification time."""
    before = (run / "manifest.json").stat()
    text = (run / "manifest.json").read_bytes()
    (run / "manifest.json").write_bytes(text.replace(b'"import:wfformat"', b'"import:wffOrmat"'))
    os.utime(run / "manifest.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (run / "manifest.json").stat().st_size == before.st_size


CHANGES: dict[str, Callable[[Path], object]] = {
    "manifest": same_size_and_time,
    "gone": lambda run: parquet(run).unlink(),
    "more": lambda run: shutil.copy(parquet(run), parquet(run).with_name("999.parquet")),
    "renamed": lambda run: parquet(run).rename(parquet(run).with_name("999.parquet")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_bundle_is_analyzed_anew(run: Path, name: str) -> None:
    found(run)
    CHANGES[name](run)
    assert not found(run).kept


def test_a_copy_of_a_bundle_is_the_same_bundle(run: Path) -> None:
    found(run)
    assert found(Path(shutil.copytree(run, run.parent / "other.trace"))).kept


def test_a_script_behind_a_link_that_changed(run: Path) -> None:
    """An analysis depends on the current targets of the names in the command."""
    text = json.loads((run / "manifest.json").read_text())
    text |= {"command": ["make", "-f", "link"], "cwd": str(run.parent)}
    (run / "manifest.json").write_text(json.dumps(text))
    before = key_of(run, Options())
    (run.parent / "link").symlink_to("Makefile")
    assert key_of(run, Options()) != before


def test_damaged_and_killed_recordings_are_not_kept(run: Path) -> None:
    parquet(run).write_bytes(b"PAR1")
    assert not found(run).sound
    assert not (run.parent / "cache").exists()
    (run / "spool").mkdir()
    manifest = json.loads((run / "manifest.json").read_text()) | {"ended_ns": None}
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert key_of(run, Options()) is None


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def other_key(file: Path) -> None:
    """Store another analysis, complete in itself, under this one's name."""
    analysis = cache.read(file.read_bytes(), file.stem, Options())
    assert analysis is not None
    with file.open("wb") as stream:
        cache.write(stream, "0" * 64, replace(analysis, tasks=analysis.tasks.slice(0, 1)))


def other_schema(file: Path) -> None:
    analysis = cache.read(file.read_bytes(), file.stem, Options())
    assert analysis is not None
    less = replace(analysis, tasks=analysis.tasks.drop_columns(["rank"]))
    with file.open("wb") as stream:
        cache.write(stream, file.stem, less)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "link": link,
    "hard link": lambda file: os.link(file, file.with_name("second")),
    "pipe": fifo,
    "folder": lambda file: (file.unlink(), file.mkdir()),
    "open to all": lambda file: file.chmod(0o666),
    "open folder": lambda file: file.parent.chmod(0o777),
    "linked folder": lambda file: link(file.parent),
    "other key": other_key,
    "other schema": other_schema,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_surely_ours_is_not_believed(run: Path, name: str) -> None:
    true = to_json(found(run).analysis)
    HOSTILE[name](kept(run)[0])
    again = found(run)
    assert not again.kept
    assert to_json(again.analysis) == true


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
@pytest.mark.parametrize("what", ["file", "folder", "base"])
def test_what_is_of_another_user_is_not_believed(run: Path, what: str) -> None:
    found(run)
    (file,) = kept(run)
    os.chown({"file": file, "folder": file.parent, "base": run.parent / "cache"}[what], 65534, -1)
    assert not found(run).kept


def test_two_at_once_and_one_that_is_killed(run: Path) -> None:
    """The last writer wins with a whole file; files of a killed one are removed after an hour."""
    words = [*TRACEHINT, "analyze", str(run), "--format", "json"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
    first, second = (process.communicate()[0] for process in both)
    assert first and first == second
    assert found(run).kept
    folder = kept(run)[0].parent
    for name, age in (("old.part", 7200), ("new.part", 60)):
        (folder / name).touch()
        at = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (at, at))
    found(run, Options(nodes=3))
    assert {f.name for f in folder.glob("*.part")} == {"new.part"}


def test_the_least_recently_used_make_room(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for nodes in (2, 3, 4):
        found(run, Options(nodes=nodes))
    size = max(file.stat().st_size for file in kept(run))
    for at, nodes in ((100, 3), (200, 4), (300, 2)):
        key = key_of(run, Options(nodes=nodes))
        os.utime(cache.ANALYSES.folder() / f"{key}.analysis", (at, at))
    monkeypatch.setenv("TRACEHINT_LIMITS", f"cache-bytes={size * 3 + size // 2}")
    found(run, Options(nodes=5))
    assert [found(run, Options(nodes=n)).kept for n in (5, 2, 4)] == [True, True, True]
    assert f"{key_of(run, Options(nodes=3))}.analysis" not in {file.name for file in kept(run)}
    monkeypatch.setenv("TRACEHINT_LIMITS", "cache-bytes=1")
    found(run, Options(nodes=6))
    assert not kept(run)


def test_nowhere_to_keep_it_is_no_error(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.parent / "cache").write_text("in the way")
    assert not found(run).kept
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert not found(run).kept


@pytest.mark.parametrize("ranges", [[], ["--no-ranges"]])
def test_tables_are_taken_where_a_bundle_is(run: Path, ranges: list[str]) -> None:
    words = ["analyze", "run.trace", "--format", "parquet", "-o", "tables", *ranges]
    assert inside(*words, cwd=run.parent).returncode == 0
    for name in ("hints", "lint", "graph", "diff"):
        told = [
            inside(*(w.replace("run.trace", source) for w in COMMANDS[name]), cwd=run.parent)
            for source in ("run.trace", "tables")
        ]
        assert told[0].returncode == told[1].returncode, (name, told[1].stderr)
        if not ranges and name in ("hints", "graph"):
            assert told[0].stdout.replace("run.trace", "tables") == told[1].stdout, name


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no table": lambda folder: (folder / "edges.parquet").unlink(),
    "no parquet": lambda folder: (folder / "edges.parquet").write_bytes(b"PAR1"),
    "no json": lambda folder: (folder / "run.json").write_text("[1]"),
    "wrong table": lambda folder: shutil.copy(folder / "tasks.parquet", folder / "edges.parquet"),
    "dangling": lambda folder: rewrite(folder, "files", lambda t: t.slice(1)),
    "twice": lambda folder: rewrite(folder, "tasks", lambda t: pa_twice(t)),
    "strange word": lambda folder: rewrite(folder, "edges", lambda t: word(t, "via", "<script>")),
}


def rewrite(folder: Path, name: str, change: Callable[..., object]) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / f"{name}.parquet")
    pq.write_table(change(table), folder / f"{name}.parquet")


def pa_twice(table: object) -> object:
    import pyarrow as pa

    return pa.concat_tables([table, table])


def word(table: object, column: str, text: str) -> object:
    import pyarrow as pa

    values = pa.array([text] * table.num_rows)  # type: ignore[attr-defined]
    at = table.schema.get_field_index(column)  # type: ignore[attr-defined]
    return table.set_column(at, column, values)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_tables_are_an_error(run: Path, name: str) -> None:
    from tracehint.hintgen.inputs import load_run

    words = ["analyze", "run.trace", "--format", "parquet", "-o", "tables"]
    assert inside(*words, cwd=run.parent).returncode == 0
    DAMAGE[name](run.parent / "tables")
    with pytest.raises(TracehintError) as error:
        load_run(run.parent / "tables", Options())
    assert "tables" in error.value.what and error.value.remedy
