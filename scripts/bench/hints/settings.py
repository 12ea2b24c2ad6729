"""The settings that stand side by side, and the tag folders that the hinted ones use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scripts.bench.hints.archive import PORT
from scripts.bench.hints.row import NODES, Row
from tests.support.hints import rule, save

TOOL = [sys.executable, "-m", "tracehint"]


@dataclass(frozen=True)
class Setting:
    """How the store and the scheduler are set for a run. `tags`: a name of `Prepared.hinted`."""

    name: str
    title: str
    local_first: bool = False
    tags: str = ""
    located: bool = False


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("default", "store default"),
        Setting("local", "local-first for the whole store", local_first=True),
        Setting("hand", "hints by hand, as in the paper", tags="hand", located=True),
        Setting("ours", "tracehint", tags="learned", located=True),
        Setting("planned", "tracehint plan", tags="planned", located=True),
    )
}
# What a person says who believes in copies: on CephFS it is what `ours` refuses.
COPIES = 'copies = { 2 = "copies_2", 5 = "copies_5" }\nreads_spread = true\n'
PLACES = 'local = "node_{host}"\ngroups = ["node_A", "node_B", "node_C", "node_D", "node_E"]\n'
PLACES += 'with_copies = "{place}_{copies}"\n'


@dataclass(frozen=True)
class Hinted:
    """Hints as a run uses them: a tag folder for what tasks make, a hint file and the site's map
    for what is there before, and by task number the part that a plan puts it in (`bound`: it
    stays there while other nodes idle)."""

    tags: Path
    hints: Path
    site: Path
    parts: Mapping[int, int] = field(default_factory=dict)
    bound: bool = False


@dataclass(frozen=True)
class Prepared:
    """A row's workflow, ready to run: its directory, Makeflow file, and hints by name."""

    row: Row
    folder: Path
    workflow: Path
    hinted: dict[str, Hinted]
    said: str  # what the tool told while it wrote the hints


def prepare(
    row: Row, work: Path, store: str, only: set[str], cluster: Path | None = None
) -> Prepared:
    """Build the workflow below `work`; record it on this disk, learn, plan for the cluster of the
    file, and emit, as far as asked for."""
    folder = work / row.name
    folder.mkdir(parents=True)
    flow = folder.parent / f"{row.name}.mf"
    flow.write_text(row.make(folder, row.size))
    (work / "map.toml").write_text(PLACES)
    (work / "hand.toml").write_text(PLACES + COPIES)
    wanted = {SETTINGS[name].tags for name in only} - {""}
    hinted, said = {}, ""
    if "hand" in wanted:
        hinted["hand"] = _by_hand(row, flow, work / f"{row.name}.hand", store)
    if wanted & {"learned", "planned"}:
        _record(row, folder, flow, work)
    if "learned" in wanted:
        hinted["learned"], told = _learned(row, flow, work, store)
        said += told
    if "planned" in wanted and cluster is not None:
        hinted["planned"], told = _planned(row, flow, work, store, cluster)
        said += told
    return Prepared(row, folder, flow, hinted, said)


def _by_hand(row: Row, flow: Path, folder: Path, store: str) -> Hinted:
    """A person's hints, in the same tag folder as ours and at the same cost."""
    from tracehint.adapters.engines.tag_table import TagTarget, encode, tag_files
    from tracehint.adapters.engines.workflow import read_workflow
    from tracehint.adapters.stores.registry import open_store

    site, by_path = flow.parent / "hand.toml", row.by_hand()
    hints = {os.fsencode(path): dict(values) for path, values in by_path.items()}
    tasks = [
        [TagTarget(path=p, kind="C", hints=hints[p]) for p in task.targets if p in hints]
        for task in read_workflow(flow).tasks
    ]
    table, _, _ = encode(tasks, open_store(store, places=site))
    folder.mkdir()
    for path, data in tag_files(folder, table).items():
        assert path is not None
        path.write_bytes(data)
        path.chmod(0o755)
    written = save(folder, *(rule(path, **dict(values)) for path, values in by_path.items()))
    return Hinted(folder, written, site)


def _record(row: Row, folder: Path, flow: Path, work: Path) -> None:
    """One run without hints on the local disk."""
    run = work / f"{row.name}.run"
    subprocess.run(["cp", "-r", folder, run], check=True)
    (run / flow.name).write_bytes(flow.read_bytes())
    with archive("127.0.0.1", row):
        _tool(run, f"record -o ../{row.name}.trace -- makeflow -T local -j {NODES} {flow.name}")
    subprocess.run(["rm", "-rf", run], check=True)


def _learned(row: Row, flow: Path, work: Path, store: str) -> tuple[Hinted, str]:
    """Rules of the recorded run, file by file, written for the workflow."""
    hints = work / f"{row.name}.json"
    said = _tool(work, f"hints {row.name}.trace --nodes {NODES} -o {hints.name}")
    tags, told = _emitted(hints, flow, store)
    return Hinted(tags, hints, work / "map.toml"), said + told


def _planned(row: Row, flow: Path, work: Path, store: str, cluster: Path) -> tuple[Hinted, str]:
    """A plan of the whole run, for the measured cluster."""
    hints = work / f"{row.name}.plan.json"
    said = _tool(
        work,
        f"plan {flow.name} --learned {row.name}.trace --cluster {cluster}"
        f" --stage-inputs -o {hints.name}",
    )
    tags, told = _emitted(hints, flow, store)
    plan = json.loads(hints.read_text()).get("plan") or {}
    rules = (tags / "parts").read_text().splitlines() if (tags / "parts").exists() else []
    parts = [json.loads(line)["part"] for line in rules if line.startswith("{")]
    return (
        Hinted(
            tags,
            hints,
            work / "map.toml",
            {number: part for number, part in enumerate(parts) if part is not None},
            plan.get("steal") not in (None, "any"),
        ),
        said + told,
    )


def _emitted(hints: Path, flow: Path, store: str) -> tuple[Path, str]:
    """The tag folder of the workflow with these hints, and what was said."""
    out = f"{hints.stem}.hinted.mf"
    said = _tool(
        flow.parent,
        f"emit {hints.name} --workflow-engine makeflow {flow.name} -o {out}"
        f" --store {store} --map map.toml --nodes {NODES} --precreate",
    )
    return flow.parent / f"{out}.tracehint", said


def stage(source: Path, target: Path, hinted: Hinted | None, store: str) -> None:
    """Bring a workflow's inputs into the store, each with its hint."""
    target.mkdir()
    words: list[str | Path] = ["cp", "-r", f"{source}/.", target]
    if hinted is not None:
        words = [
            *TOOL, "run", "--no-record", "--quiet", "--hints", hinted.hints, "--store", store,
            "--map", hinted.site, "--data-root", target, "--", *words,
        ]  # fmt: skip  # a table
    subprocess.run(words, check=True)


def _tool(cwd: Path, words: str) -> str:
    """What `tracehint WORDS` says; names in it have no spaces."""
    done = subprocess.run([*TOOL, *words.split()], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"tracehint {words}: {done.stderr[-2000:]}")
    return done.stderr


@contextmanager
def archive(address: str, row: Row, before: tuple[str | Path, ...] = ()) -> Iterator[None]:
    """The row's archive, where it has one, answers; `before`: command that enters a name space."""
    if not row.staged:
        yield
        return
    names = [f"{name}={size}" for name, size in row.staged.items()]
    root = Path(__file__).parents[3]
    serve = subprocess.Popen(
        [*before, sys.executable, "-m", "scripts.bench.hints.archive", address, *names], cwd=root
    )
    probe = f"until (: </dev/tcp/{address}/{PORT}) 2>/dev/null; do sleep 0.1; done"
    try:
        subprocess.run([*before, "timeout", "20", "bash", "-c", probe], check=True)
        yield
    finally:
        serve.terminate()
        serve.wait()
