"""Every parser of external files with damaged input: it reads it or reports what is wrong.

Quick runs have fixed seeds; `make test-full` runs each parser for half a minute from a new seed
(TRACEHINT_FUZZ_SECONDS for longer). Strace logs are in test_strace_fuzz.py, JX also in
test_jx.py.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tests.support.mutate import damaged
from tests.test_engine_graphs import (
    CHILDREN,
    DATABASE,
    JOBLOG,
    LAUNCHED,
    LOG,
    MAKEFLOW,
    PEGASUS,
    completed,
    instance,
)
from tests.test_engine_logs import SWIFT_INFO, SWIFT_K, record
from tracehint.adapters.engines.graphs import read_graph, sniff, write_declared_bundle
from tracehint.adapters.engines.makeflow.workflow import read_workflow
from tracehint.adapters.stores.places import load_places
from tracehint.adapters.stores.registry import load_table
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.errors import BundleError, TracehintError
from tracehint.hintgen.hints.hintfile import load
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("TRACEHINT_FUZZ_SECONDS", "30"))
Files = dict[str, bytes]

_JX = """{"define": {"N": 2, "s": ["a", "b"]}, # comment
 "rules": [{"command": "run " + i + format("%d", N), "outputs": [x + i], "inputs": [join(s, "-")]}
           for x in s for i in range(N) if i >= 0 and not (i == 7)]}"""
_RULES = [
    {"command": "sort a > b", "inputs": ["a"], "outputs": [{"dag_name": "b"}]},
    {"workflow": "s.jx", "inputs": ["b"], "outputs": ["c"]},
]
_SMK = {
    "rule": "r",
    "input": ["i"],
    "shellcmd": "c",
    "job_hash": 5,
    "starttime": 1.7e9,
    "endtime": 1.7e9,
    "incomplete": False,
}
_D3 = {
    "nodes": [
        {"id": 0, "value": {"jobid": 0, "label": "all", "rule": "all"}},
        {"id": 1, "value": {"jobid": 1, "label": "p", "rule": "p"}},
    ],
    "edges": [{"u": 1, "v": 0}],
}
_PROV = {
    "activity": {"id:1": {"prov:label": "Run of workflow/packed.cwl#main/s_2"}, "id:2": [{"a": 1}]},
    "entity": {"id:f": {"cwlprov:basename": "a"}},
    "hadMember": {"_:1": {"prov:collection": "id:c", "prov:entity": "id:f"}},
    "used": {"_:3": [{"prov:activity": "id:1", "prov:entity": "id:c"}]},
    "wasGeneratedBy": {"_:5": {"prov:activity": "id:1", "prov:entity": "id:f"}},
    "wasStartedBy": {"_:6": {"prov:activity": "id:1", "prov:time": "2024-01-31T12:00:00Z"}},
}
_TRACE = (
    b"task_id\thash\tnative_id\tprocess\tname\tstatus\texit\tsubmit\tstart\tcomplete\trchar\n"
    b"1\tab/cdef01\t77\tWF:S\tWF:S (1)\tCOMPLETED\t0\t1700000000000\t1700000000500\t-\t1.5 KB\n"
)
NEXTFLOW_LOG = LAUNCHED + completed(Path("/w/ab/cd"), "A (1)", code="1")
_WORK = f"work/ab/cdef01{'0' * 24}"
_SUMMARY = b"output_file\tdate\trule\tlog-file(s)\tinput-file(s)\tshellcmd\na\td\tr\t-\tx,y\tsort\n"
_TURBINE = (
    b"[1]  2.000 2024-01-31 12:00:02 app: 1:1 io=stdin a.txt stdout b.txt : sort -r\n"
    b"[1]  2.001 hostname: n1\n[1]  3.250 duration: 1.250\n 4.000 shell: cp a b stdout o\n"
)
_TABLE = b"""name = "mine"
title = "x"
prefix = "user.mine."
targets = ["directory", "file"]
[hints."DP=local"]
attribute = "layout"
value = "5"
acts = ["directory"]
level = "approximate"
how = "so"
[hints.BlockSize]
set = [{ attribute = "s", value = "strip:{value}" }, { attribute = "t", value = "{arg}" }]
yields_to = "DP=scatter"
"""
_PLACES = b"""local = "scratch-{host}"
groups = ["g0", "g1"]
reads_spread = true
ranks = 2
[copies]
1 = "one"
3 = "three"
"""


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


@dataclass(frozen=True)
class Target:
    """A parser: valid files, one of which is damaged in each attempt, and how they are read."""

    files: Callable[[], Files]
    read: Callable[[Path], object]


def _graph(name: str, engine: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        sniff(folder / name)
        return read_graph(folder / name, engine)

    return read


def _engine(engine: str, name: str, **files: bytes | str) -> Target:
    """`files`: contents by name, with two underscores for a slash and one for a dot."""
    named = {
        key.replace("__", "/").replace("_", "."): v if isinstance(v, bytes) else v.encode()
        for key, v in files.items()
    }
    return Target(lambda: dict(named), _graph(name, engine))


def _bundle_files() -> Files:
    import tempfile

    run = RunBuilder()
    engine = run.process(["sh", "w.sh"])
    job = run.process(["gen"], parent=engine)
    file = run.file("/data/x", existed=False)
    run.write(job, file, 0, 100, at=1.0)
    run.read(engine, file, 0, 100, at=2.0)
    with tempfile.TemporaryDirectory() as folder:
        root = run.save(Path(folder) / "b.trace")
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def _hint_files() -> Files:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder), rule("out_{n}.txt", DP="local", Replication=3), rule("b"))
        return {"hints.json": path.read_bytes()}


TARGETS: dict[str, Target] = {
    "wfformat 1.5": _engine("wfformat", "i.json", i_json=_dump(instance("1.5"))),
    "wfformat 1.2": _engine("wfformat", "i.json", i_json=_dump(instance("1.2"))),
    "makeflow": _engine("makeflow", "w.mf", w_mf=MAKEFLOW),
    "makeflow log": _engine("makeflow", "w.makeflowlog", w_makeflowlog=LOG),
    "makeflow json": _engine("makeflow", "w.json", w_json=_dump({"rules": _RULES})),
    "makeflow jx": _engine("makeflow", "w.jx", w_jx=_JX),
    "workflow to emit for": Target(
        lambda: {"w.mf": MAKEFLOW.encode(), "w.jx": _JX.encode()},
        lambda folder: [_workflow(folder / name) for name in ("w.mf", "w.jx")],
    ),
    "snakemake metadata": Target(
        lambda: {f".snakemake/metadata/{base64.b64encode(b'out').decode()}": _dump(_SMK)},
        _graph(".", "snakemake"),
    ),
    "snakemake summary": _engine("snakemake", "s.tsv", s_tsv=_SUMMARY),
    "snakemake d3dag": _engine("snakemake", "d.json", d_json=_dump(_D3)),
    "nextflow": Target(
        lambda: {"trace.txt": _TRACE, f"{_WORK}/.command.sh": b"#!\nrun", f"{_WORK}/o": b"1"},
        _graph("trace.txt", "nextflow"),
    ),
    "nextflow log": _engine("nextflow-log", ".nextflow.log", _nextflow_log=NEXTFLOW_LOG),
    "pegasus": _engine("pegasus", "w.yml", w_yml=PEGASUS, a_out_000=record("ID1", 7)),
    "kickstart": _engine("pegasus", "a.out.000", a_out_000=record("ID1", 7) + record("ID2", 8)),
    "cwl": Target(
        lambda: {"metadata/provenance/primary.cwlprov.json": _dump(_PROV)}, _graph(".", "cwl")
    ),
    "make": _engine("make", "m.txt", m_txt=CHILDREN + DATABASE),
    "parallel": _engine("parallel", "j.log", j_log=JOBLOG),
    "swift-k": Target(
        lambda: {"f-run1.log": SWIFT_K.encode(), "f-run1.d/s-c3-info": SWIFT_INFO.encode()},
        _graph("f-run1.log", "swift-k"),
    ),
    "swift-t": _engine("swift-t", "t.log", t_log=_TURBINE),
    "bundle": Target(_bundle_files, lambda folder: segment_tasks(read_bundle(folder))),
    "hint file": Target(_hint_files, lambda folder: load(folder / "hints.json")),
    "store table": Target(lambda: {"t.toml": _TABLE}, lambda folder: load_table(folder / "t.toml")),
    "store map": Target(lambda: {"m.toml": _PLACES}, lambda folder: load_places(folder / "m.toml")),
}


def _workflow(path: Path) -> object:
    flow = read_workflow(path)
    return [task.type for task in flow.tasks], flow.describe_files()


def _lay(folder: Path, files: Files) -> None:
    """Make the folder contain exactly these files."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _try(target: Target, folder: Path, files: Files, *, use: bool = True) -> bool:
    """Return whether the files were read; any error but a TracehintError is a bug. use: write a
    graph as a bundle and segment its tasks."""
    _lay(folder, files)
    try:
        found = target.read(folder)
    except TracehintError as error:
        assert error.what
        return False
    if use and hasattr(found, "io"):
        _use(found, folder.with_name("out.trace"))
    return True


def _use(graph: object, path: Path) -> None:
    from tracehint.adapters.engines.graph_base import DeclaredGraph

    assert isinstance(graph, DeclaredGraph)
    write_declared_bundle(graph, path, force=True)
    bundle = read_bundle(path)
    assert not bundle.problems
    assert segment_tasks(bundle).tasks.num_rows


@pytest.fixture(autouse=True)
def short_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged JX loop may have very many iterations."""
    monkeypatch.setenv("TRACEHINT_LIMITS", "jx-seconds=1")


def _fuzz(name: str, folder: Path, dice: random.Random, more: Callable[[int], bool]) -> int:
    target = TARGETS[name]
    samples = target.files()
    if "w.jx" in samples and shutil.which("jx2json") is None:
        pytest.skip("jx2json (coop-computing-tools) is not installed")
    assert _try(target, folder / "in", samples), "the sample itself must be readable"
    tried = 0
    while more(tried):
        files = dict(samples)
        hit = dice.choice(sorted(files))
        files[hit] = damaged(files[hit], dice)
        try:
            _try(target, folder / "in", files, use=tried % 4 == 0)
        except Exception as error:
            text = files[hit][:3000]
            raise AssertionError(f"{hit}: {text!r}: {type(error).__name__}: {error}") from error
        tried += 1
    return tried


@pytest.mark.parametrize("name", list(TARGETS))
def test_damaged_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    _fuzz(name, tmp_path, random.Random(7), lambda tried: tried < 40)


@pytest.mark.full
@pytest.mark.parametrize("name", list(TARGETS))
def test_damaged_input_for_half_a_minute(name: str, tmp_path: Path) -> None:
    seed = time.time_ns()
    end = time.monotonic() + SECONDS
    print(f"{name}: seed {seed}")
    tried = _fuzz(name, tmp_path, random.Random(seed), lambda _: time.monotonic() < end)
    print(f"{name}: {tried} inputs")
    assert tried


# Bugs that fuzzing found.
def test_a_job_output_whose_records_do_not_begin_a_line(tmp_path: Path) -> None:
    text = "7" + record("ID1", 7)
    for name, content in (("w.yml", PEGASUS), ("a.out.000", text)):
        (tmp_path / name).write_text(content)
    assert read_graph(tmp_path / "w.yml", "pegasus").tasks.num_rows


def test_hosts_with_odd_names_keep_their_own_rows(tmp_path: Path) -> None:
    """The import failed for a name too long for a file name; of two names that mapped to the same
    directory, the first one's rows were lost."""
    hosts = ["x" * 70_000, "x" * 69_999, "a:b", "a_b", "..", "/", "\u00e9", "n1"]
    lines = [f"{n}\t{host}\t1700000000.5\t1.0\t0\t0\t0\t0\ttrue" for n, host in enumerate(hosts)]
    header = JOBLOG.split("\n", 1)[0]
    path = tmp_path / "jobs"
    path.write_text("\n".join([header, *lines]))
    write_declared_bundle(read_graph(path), tmp_path / "b.trace")
    rows = read_bundle(tmp_path / "b.trace").tables["declared_tasks"].to_pylist()
    assert sorted(r["task"] for r in rows) == [f"j{n}" for n in range(len(hosts))]
    assert not [p for p in tmp_path.rglob("*.parquet") if tmp_path / "b.trace" not in p.parents]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("site", -(2**63) - 1),
        ("name", None),
        ("mounts", [{"path": []}]),
        ("mounts", {"a": 1}),
        ("clock", {"boot_ns": "x"}),
        ("cpus", True),
    ],
)
def test_hosts_of_a_manifest_have_their_types(tmp_path: Path, key: str, value: object) -> None:
    """A number as a site made analyze end with a traceback."""
    root = RunBuilder().save(tmp_path / "b.trace")
    data = json.loads((root / "manifest.json").read_text())
    data["hosts"][0][key] = value
    (root / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(BundleError, match=f"damaged manifest: .*({key}|number)"):
        read_bundle(root)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("started_ns", 2**63),
        ("ended_ns", 1.5),
        ("command", ["a", 1]),
        ("hosts", [7]),
        ("notes", "x"),
        ("complete", 1),
        ("exit_status", "0"),
        ("format", "tracehint.bundle/\u00b2"),
    ],
)
def test_a_manifest_has_its_types(tmp_path: Path, key: str, value: object) -> None:
    root = RunBuilder().save(tmp_path / "b.trace")
    data = json.loads((root / "manifest.json").read_text())
    (root / "manifest.json").write_text(json.dumps(data | {key: value}))
    with pytest.raises(BundleError):
        read_bundle(root)
