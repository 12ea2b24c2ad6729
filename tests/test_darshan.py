"""Darshan logs with ground truth: recorded accesses are exact, every loss is reported."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cli import tracehint
from tests.support.darshan_logs import File, segments, write_log
from tests.support.gains import check_outputs
from tests.support.mutate import damaged
from tracehint.analyzer.analyze import analyze
from tracehint.collectors.darshan import DarshanCollector
from tracehint.collectors.darshan.assembly import Assembly
from tracehint.collectors.darshan.importer import read_logs
from tracehint.collectors.darshan.records import LogFacts
from tracehint.errors import InputError
from tracehint.hintgen.summary.gain import built_in
from tracehint.schemas.store import Bundle, read_bundle
from tracehint.schemas.tables import TABLES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not importlib.util.find_spec("darshan"), reason="darshan is not installed"),
]

LOGS = Path(__file__).parent.parent / "datasets" / "darshan-logs"
WORKFLOWS = sorted(p.parent.name for p in LOGS.glob("*/ground-truth.json"))


def load(folder: Path, tmp_path: Path) -> Bundle:
    from tracehint.collectors.darshan.importer import import_darshan

    import_darshan([folder], tmp_path / "b.trace")
    return read_bundle(tmp_path / "b.trace")


@functools.cache
def workflow(name: str) -> Bundle:
    """Return the bundle of one set of logs, cached."""
    with tempfile.TemporaryDirectory() as folder:
        return load(LOGS / name, Path(folder))


def truth_of(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((LOGS / name / "ground-truth.json").read_text())
    return data


Key = tuple[int, str, str]  # job, path, read or write


def volumes(bundle: Bundle) -> dict[Key, int]:
    """Return bytes per job, file and direction."""
    jobs = {
        p["proc"]: int(next(e["value"] for e in p["env"] if e["name"] == "SLURM_JOB_ID"))
        for p in bundle.tables["processes"].to_pylist()
    }
    paths = {n["file"]: n["path"].decode() for n in bundle.tables["names"].to_pylist()}
    found: dict[Key, int] = {}
    for e in bundle.tables["extents"].to_pylist():
        key = (jobs[e["proc"]], paths[e["file"]], e["op"])
        found[key] = found.get(key, 0) + e["bytes"]
    return found


def ranges(bundle: Bundle, job: int, path: str, op: str) -> tuple[set[int], bool]:
    """Return the 4 KiB blocks that the extents touch, and whether all extents are exact."""
    jobs = {
        p["proc"]: int(next(e["value"] for e in p["env"] if e["name"] == "SLURM_JOB_ID"))
        for p in bundle.tables["processes"].to_pylist()
    }
    paths = {n["file"]: n["path"].decode() for n in bundle.tables["names"].to_pylist()}
    blocks: set[int] = set()
    exact = True
    for e in bundle.tables["extents"].to_pylist():
        if (jobs[e["proc"]], paths[e["file"]], e["op"]) == (job, path, op):
            end = e["start"] + e["length"]
            blocks.update(range(e["start"] // 4096, -(-end // 4096)))
            exact &= e["exact"]
    return blocks, exact


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_access_that_darshan_saw_has_its_bytes(name: str) -> None:
    truth, found = truth_of(name), volumes(workflow(name))
    jobs = {t["id"]: t["jobid"] for t in truth["tasks"]}
    expected = {
        (jobs[a["task"]], a["file"], a["op"]): a["darshan_bytes"]
        for a in truth["accesses"]
        if a["darshan_bytes"]
    }
    orphans = {t["jobid"] for t in truth["tasks"] if t["darshan"] == "none"}
    assert {k: v for k, v in found.items() if k[0] not in orphans} == expected


@pytest.mark.parametrize("name", ["broadcast", "scatter-counters-only"])
def test_gains_are_within_bounds_and_the_same_in_all_outputs(name: str, tmp_path: Path) -> None:
    check_outputs(analyze(workflow(name)), workflow(name), built_in(), tmp_path)


@pytest.mark.parametrize("name", [n for n in WORKFLOWS if "counters-only" not in n])
def test_every_region_is_exact_where_there_are_segments(name: str) -> None:
    truth, bundle = truth_of(name), workflow(name)
    jobs = {t["id"]: t["jobid"] for t in truth["tasks"]}
    compared = 0
    for access in truth["accesses"]:
        if access["darshan_bytes"] != access["bytes"] or access["regions"] == "append":
            continue
        blocks, exact = ranges(bundle, jobs[access["task"]], access["file"], access["op"])
        if not exact:
            continue
        expected: set[int] = set()
        for offset, length in access["regions"]:
            expected.update(range(offset // 4096, -(-(offset + length) // 4096)))
        assert blocks == expected, access
        compared += 1
    assert compared >= 3


def test_counters_alone_give_exact_ranges_of_contiguous_readers() -> None:
    bundle = workflow("scatter-counters-only")
    truth = truth_of("scatter-counters-only")
    jobs = {t["id"]: t["jobid"] for t in truth["tasks"]}
    reads = [a for a in truth["accesses"] if a["op"] == "read"]
    for access in reads:
        blocks, exact = ranges(bundle, jobs[access["task"]], access["file"], "read")
        ((offset, length),) = access["regions"]
        assert exact
        assert blocks == set(range(offset // 4096, (offset + length) // 4096))


def test_strided_counters_are_only_bounds(tmp_path: Path) -> None:
    bundle = load(LOGS / "quirks" / "dxt-memory-limit", tmp_path)
    flags = set(bundle.tables["extents"].column("exact").to_pylist())
    assert flags == {True, False}
    total = sum(bundle.tables["extents"].column("bytes").to_pylist())
    assert total == 200_000 * 16
    details = bundle.tables["losses"].column("detail").to_pylist()
    assert any("segments of a file are missing" in d for d in details)


def test_damaged_logs_are_named_and_the_others_kept(tmp_path: Path) -> None:
    bundle = load(LOGS / "quirks", tmp_path)
    check_outputs(analyze(bundle), bundle, built_in(), tmp_path)
    named = [n for n in bundle.manifest.notes if n.startswith("log not read")]
    assert len(named) == 5
    assert bundle.tables["processes"].num_rows == 20
    assert "unreadable_log" in bundle.tables["losses"].column("kind").to_pylist()


def test_only_damaged_logs_fail_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of 5 Darshan logs"):
        load(LOGS / "quirks" / "damaged", tmp_path)


def test_limits_and_killed_processes_are_losses(tmp_path: Path) -> None:
    many = load(LOGS / "quirks" / "too-many-files", tmp_path / "a")
    assert any("limit" in d for d in many.tables["losses"].column("detail").to_pylist())
    killed = load(LOGS / "quirks" / "killed", tmp_path / "b")
    assert any("killed" in d for d in killed.tables["losses"].column("detail").to_pylist())


def test_forked_children_have_their_parent(tmp_path: Path) -> None:
    rows = load(LOGS / "quirks" / "python-multiprocessing", tmp_path).tables["processes"]
    parents = rows.column("parent").to_pylist()
    assert parents.count(None) == 1
    assert len([p for p in parents if p is not None]) == 3


def crash_on_request(path: str) -> LogFacts:
    """A reader that crashes, as the Darshan library may."""
    if "crash" in Path(path).name:
        os.kill(os.getpid(), signal.SIGSEGV)
    return LogFacts(path)


def test_a_log_that_crashes_the_library_costs_only_itself() -> None:
    paths = ["a.darshan", "crash.darshan", "b.darshan"]
    found = dict(read_logs(paths, reader=crash_on_request))
    assert isinstance(found["a.darshan"], LogFacts)
    assert isinstance(found["b.darshan"], LogFacts)
    assert "crashed" in str(found["crash.darshan"])


def test_logs_cut_at_any_length_never_stop_the_import(tmp_path: Path) -> None:
    good = next((LOGS / "pipeline").glob("*.darshan"))
    data = good.read_bytes()
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / good.name).write_bytes(data)
    for k, cut in enumerate(range(0, len(data), max(1, len(data) // 24))):
        (folder / f"cut{k}.darshan").write_bytes(data[:cut])
    bundle = load(folder, tmp_path)
    assert good.name not in " ".join(bundle.manifest.notes)
    assert len([n for n in bundle.manifest.notes if n.startswith("log not read")]) >= 20


STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* At exit, every process with the switches on leaves a copy of a real log, as Darshan would. */
__attribute__((destructor)) static void leave(void)
{
	const char *on = getenv("DARSHAN_ENABLE_NONMPI"), *dxt = getenv("DXT_ENABLE_IO_TRACE");
	const char *dir = getenv("DARSHAN_LOG_DIR_PATH"), *from = getenv("STAND_IN_LOG");
	char name[4096], buffer[65536];
	FILE *in, *out;
	size_t n;

	if (!on || !dxt || !dir || !from || !getenv("DARSHAN_CONFIG_PATH"))
		return;
	snprintf(name, sizeof(name), "%s/me_true_id77-88_1.darshan", dir);
	in = fopen(from, "rb");
	out = fopen(name, "wb");
	while (in && out && (n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		fwrite(buffer, 1, n, out);
	if (out)
		fclose(out);
}
"""


def recorder(tmp_path: Path, *command: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run `tracehint record --collector darshan` in a separate process."""
    words = ("--collector", "darshan", "-o", tmp_path / "r.trace")
    return tracehint("record", *words, "--", *command, cwd=tmp_path, env=extra)


def test_record_preloads_the_library_of_the_site(tmp_path: Path) -> None:
    library = tmp_path / "libdarshan.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, "-xc", "-"], input=STAND_IN, text=True, check=True
    )
    log = next((LOGS / "scatter").glob("*_dd_id2028*.darshan"))
    done = recorder(
        tmp_path, "bash", "-c", "echo out; exit 7", DARSHAN_LIB=str(library), STAND_IN_LOG=str(log)
    )
    assert (done.returncode, done.stdout) == (7, "out\n"), done.stderr
    bundle = read_bundle(tmp_path / "r.trace")
    assert bundle.manifest.collector == "darshan"
    assert bundle.manifest.exit_status == 7, done.stderr
    assert bundle.manifest.command == ["bash", "-c", "echo out; exit 7"]
    paths = bundle.tables["names"].column("path").to_pylist()
    assert b"/scratch/wf/scatter/grid.dat" in paths
    assert not (tmp_path / "r.trace" / "raw").exists()


def test_record_without_a_library_tells_how_to_get_it(tmp_path: Path) -> None:
    done = recorder(tmp_path, "true", DARSHAN_LIB=str(tmp_path / "none.so"))
    assert done.returncode == 125
    assert "no libdarshan.so found" in done.stderr
    assert "DARSHAN_LIB" in done.stderr


def test_a_run_without_logs_keeps_its_status(tmp_path: Path) -> None:
    library = tmp_path / "libdarshan.so"
    subprocess.run(["cc", "-shared", "-o", library, "-xc", "/dev/null"], check=True)
    done = recorder(tmp_path, "sh", "-c", "exit 3", DARSHAN_LIB=str(library))
    assert done.returncode == 3
    assert "no .darshan files found" in done.stderr


def test_logs_of_any_size_can_be_written_and_read(tmp_path: Path) -> None:
    """Random and contiguous segments are read back as they were written."""
    dice = np.random.default_rng(3)
    offsets = dice.choice(1 << 20, 20_000, replace=False) * 8192
    write_log(
        tmp_path / "u_app_id5-77_1-1-1-1_1.darshan",
        [
            File("/s/random", reads=segments(offsets, 4096)),
            File("/s/all", writes=segments(np.arange(50_000) * 64, 64)),
            File("/s/none"),
        ],
        jobid=5,
        exe="/bin/app -x",
    )
    bundle = load(tmp_path, tmp_path)
    (process,) = bundle.tables["processes"].to_pylist()
    assert (process["pid"], process["argv"]) == (77, [b"/bin/app", b"-x"])
    paths = {n["file"]: n["path"] for n in bundle.tables["names"].to_pylist()}
    found: dict[bytes, list[tuple[int, int]]] = {}
    for e in bundle.tables["extents"].to_pylist():
        assert e["exact"]
        found.setdefault(paths[e["file"]], []).append((e["start"], e["length"]))
    assert found[b"/s/all"] == [(0, 50_000 * 64)]
    assert sorted(found[b"/s/random"]) == sorted((int(o), 4096) for o in offsets)
    assert b"/s/none" not in found and not bundle.tables["losses"].num_rows


def damaged_logs(folder: Path, dice: random.Random, count: int) -> list[str]:
    """Write mutated real logs and logs with damaged records, packed correctly; return the paths."""
    real = sorted(LOGS.glob("*/*.darshan"))
    few = File("/s/a", writes=segments(np.arange(9) * 10, 10), reads=segments([5, 3], 7))
    paths = []
    for k in range(count):
        path = folder / f"u_id{k}-{k}_1.darshan"
        path.unlink(missing_ok=True)
        if dice.random() < 0.3:
            path.write_bytes(damaged(dice.choice(real).read_bytes(), dice))
        else:
            write_log(path, [few, File("/s/b")], spoil=lambda raw: damaged(raw, dice) or b"x")
        paths.append(str(path))
    return paths


def read_damaged(folder: Path, seed: int, count: int) -> int:
    """Return how many of the damaged logs were read; each gives facts or a reason."""
    paths = damaged_logs(folder, random.Random(seed), count)
    found = dict(read_logs(paths))
    assert found.keys() == set(paths), seed
    good = [facts for facts in found.values() if isinstance(facts, LogFacts)]
    if good:
        assembly = Assembly(good)
        tables = assembly.tables([])
        for name, table in tables.items():
            assert table.schema.equals(TABLES[name]), seed
        assembly.manifest([])
    return len(good)


def test_damaged_logs_are_read_or_named(tmp_path: Path) -> None:
    assert 0 < read_damaged(tmp_path, 11, 64) < 64


@pytest.mark.full
def test_damaged_logs_for_half_a_minute(tmp_path: Path) -> None:
    seed = time.time_ns()
    end = time.monotonic() + float(os.environ.get("TRACEHINT_FUZZ_SECONDS", "30"))
    rounds = 0
    while time.monotonic() < end:
        read_damaged(tmp_path, seed + rounds, 256)
        rounds += 1
    print(f"seed {seed}, {rounds} rounds of 256 logs")


def test_impossible_figures_are_left_out_and_counted(tmp_path: Path) -> None:
    """Values in a damaged log's records must neither overflow nor stretch the run."""
    odd = segments(np.arange(6) * 4096, 4096)
    odd["offset"][1], odd["length"][2] = -5, 1 << 62
    odd["first"][3], odd["last"][4] = np.nan, 1e300
    write_log(tmp_path / "u_id1-99999999999_1.darshan", [File("/s/a", writes=odd)])
    bundle = load(tmp_path, tmp_path)
    rows = bundle.tables["extents"].to_pylist()
    exact = [(e["start"], e["length"]) for e in rows if e["exact"]]
    assert exact == [(0, 4096), (5 * 4096, 4096)]
    assert all(e["first_ns"] < bundle.manifest.started_ns + 10**13 for e in rows)
    (details,) = [
        d for d in bundle.tables["losses"].column("detail").to_pylist() if "4 of 6 segments" in d
    ]
    assert "impossible" in details
    assert bundle.tables["processes"].column("pid").to_pylist() == [0]


def test_recording_needs_the_library_and_the_package_that_reads_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libdarshan.so"
    monkeypatch.setenv("DARSHAN_LIB", str(library))
    assert "DARSHAN_LIB" in DarshanCollector().check().remedy
    library.touch()
    assert DarshanCollector().check().usable
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    found = DarshanCollector().check()
    assert not found.usable and "tracehint[darshan]" in found.remedy
