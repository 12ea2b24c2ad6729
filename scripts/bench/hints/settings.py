"""The four settings that stand side by side, and the tag folders that two of them use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.hints.archive import PORT
from scripts.bench.hints.row import NODES, Row

TOOL = [sys.executable, "-m", "tracehint"]


@dataclass(frozen=True)
class Setting:
    """How the store and the scheduler are set for a run. `tags`: "", "hand" or "learned"."""

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
    )
}
# What a person says who believes in copies: on CephFS it is what `ours` refuses.
COPIES = 'copies = { 2 = "copies_2", 5 = "copies_5" }\nreads_spread = true\n'
PLACES = 'local = "node_{host}"\ngroups = ["node_A", "node_B", "node_C", "node_D", "node_E"]\n'


@dataclass(frozen=True)
class Prepared:
    """A row's workflow, ready to run: its directory, Makeflow file, and tag folders by name."""

    row: Row
    folder: Path
    workflow: Path
    tags: dict[str, Path]
    said: str  # what the tool told while it wrote the hints


def prepare(row: Row, work: Path, store: str, only: set[str]) -> Prepared:
    """Build the workflow below `work`; record it on this disk, learn and emit where asked for."""
    folder = work / row.name
    folder.mkdir(parents=True)
    flow = folder.parent / f"{row.name}.mf"
    flow.write_text(row.make(folder, row.size))
    (work / "map.toml").write_text(PLACES)
    (work / "hand.toml").write_text(PLACES + COPIES)
    wanted = {SETTINGS[name].tags for name in only} - {""}
    tags, said = {}, ""
    if "hand" in wanted:
        tags["hand"] = _by_hand(row, flow, work / f"{row.name}.hand", store)
    if "learned" in wanted:
        tags["learned"], said = _learned(row, folder, flow, work, store)
    return Prepared(row, folder, flow, tags, said)


def _by_hand(row: Row, flow: Path, folder: Path, store: str) -> Path:
    """A person's hints, in the same tag folder as ours and at the same cost."""
    from tracehint.adapters.engines.tag_table import TagTarget, encode, tag_files
    from tracehint.adapters.engines.workflow import read_workflow
    from tracehint.adapters.stores.registry import open_store

    hints = {os.fsencode(path): dict(values) for path, values in row.by_hand().items()}
    tasks = [
        [TagTarget(path=p, kind="C", hints=hints[p]) for p in task.targets if p in hints]
        for task in read_workflow(flow).tasks
    ]
    table, _, _ = encode(tasks, open_store(store, places=flow.parent / "hand.toml"))
    folder.mkdir()
    for path, data in tag_files(folder, table).items():
        assert path is not None
        path.write_bytes(data)
        path.chmod(0o755)
    return folder


def _learned(row: Row, folder: Path, flow: Path, work: Path, store: str) -> tuple[Path, str]:
    """Record an unhinted run on the local disk, learn its rules, write them for the workflow."""
    run = work / f"{row.name}.run"
    subprocess.run(["cp", "-r", folder, run], check=True)
    (run / flow.name).write_bytes(flow.read_bytes())
    out = f"{row.name}.hinted.mf"
    with archive("127.0.0.1", row):
        _tool(run, f"record -o ../{row.name}.trace -- makeflow -T local -j {NODES} {flow.name}")
    said = [
        _tool(work, f"hints {row.name}.trace --nodes {NODES} -o {row.name}.json"),
        _tool(
            work,
            f"emit {row.name}.json --workflow-engine makeflow {flow.name} -o {out}"
            f" --store {store} --map map.toml --nodes {NODES} --precreate",
        ),
    ]
    subprocess.run(["rm", "-rf", run], check=True)
    return work / f"{out}.tracehint", "".join(said)


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
