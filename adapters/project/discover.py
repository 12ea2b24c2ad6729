"""Finding out what a workflow runs on: its engine, its store, its nodes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tracehint.adapters.place.hosts import read_hosts
from tracehint.adapters.project.mounts import CLUSTERS, LOCAL, store_of
from tracehint.collectors.hostinfo import mounts

# file in the directory -> engine
ENGINES: tuple[tuple[str, str], ...] = (
    ("*.makeflow", "makeflow"), ("Makeflow", "makeflow"), ("*.mf", "makeflow"),
    ("Snakefile", "snakemake"), ("workflow/Snakefile", "snakemake"), ("*.smk", "snakemake"),
    ("main.nf", "nextflow"), ("*.nf", "nextflow"), ("*.cwl", "cwl"), ("*.swift", "swift-t"),
    ("Makefile", "make"), ("makefile", "make"),
)  # fmt: skip  # a table


@dataclass(frozen=True)
class Scheduler:
    """A batch system: what submits a job with its environment, and which nodes can run one."""

    name: str
    submit: tuple[str, ...]
    ask: tuple[str, ...]
    ready: re.Pattern[str]  # of the answer; its group is a node


SCHEDULERS = (
    Scheduler(
        "Slurm", ("sbatch",), ("sinfo", "-h", "-N", "-o", "%N %T"),
        # a star: the node does not answer
        re.compile(r"^(\S+) (?:idle|mixed|allocated|completing|planned)(?!\*)[^*\n]*$", re.M),
    ),
    Scheduler("LSF", ("bsub",), ("bhosts", "-w"),
        re.compile(r"^(\S+)\s+(?:ok|closed_(?:Full|Busy|Excl|cu_Excl))\s", re.M)),
    Scheduler("PBS", ("qsub", "-V"), ("pbsnodes", "-a"),
        re.compile(r"^(\S+)\n(?:[ \t]+(?!state =)\S.*\n)*[ \t]+state = "
                   r"(?:free|busy|job-busy|job-exclusive)[ \t]*$", re.M)),
)  # fmt: skip  # a table
HOSTS = "hosts.toml"
# a list of nodes in the directory, a name a line: what it is called
LISTS = ("hostfile", "machinefile", "hosts.txt", "nodes.txt", "machines")
_MOST = 100_000  # lines of such a file


@dataclass(frozen=True)
class Discovered:
    """What was found; empty where nothing was. `why` in words, by key.

    `store` is what takes the hints; on a disk of one node that are attributes (`local` is true).
    """

    engine: str
    store: str
    local: bool
    data_root: str
    nodes: int
    hosts: str  # host file for `place` and `emit`
    why: dict[str, str]
    scheduler: Scheduler | None = None


def discover(directory: Path, table: Sequence[Mapping[str, Any]] | None = None) -> Discovered:
    """Look around the directory; nothing is changed, no host is asked.

    table: the mounts; None: those of this machine.
    """
    why: dict[str, str] = {}
    engine = _engine(directory, why)
    kind, why["store"] = store_of(directory, mounts() if table is None else table)
    hosts, nodes = _hosts(directory, why)
    scheduler = next((s for s in SCHEDULERS if shutil.which(s.submit[0])), None)
    if scheduler is not None:
        nodes = nodes or _nodes(scheduler, why)
    store = "xattr" if kind in ("", LOCAL) else kind
    root = str(directory.resolve())
    return Discovered(engine, store, kind == LOCAL, root, nodes, hosts, why, scheduler)


def _engine(directory: Path, why: dict[str, str]) -> str:
    for pattern, name in ENGINES:
        hit = next((p for p in sorted(directory.glob(pattern)) if p.is_file()), None)
        if hit is not None:
            why["engine"] = f"{hit.relative_to(directory)} is here"
            return name
    return ""


def _hosts(directory: Path, why: dict[str, str]) -> tuple[str, int]:
    """The host file of the directory and its nodes; those of a plain list are only counted."""
    path = directory / HOSTS
    if path.is_file():
        count = len(read_hosts(path))
        why["nodes"] = f"{count} nodes in {HOSTS}"
        return HOSTS, count
    for name in LISTS:
        if (directory / name).is_file():
            with (directory / name).open(encoding="utf-8", errors="replace") as stream:
                lines = [line.partition("#")[0].split() for line in islice(stream, _MOST)]
            count = len({words[0] for words in lines if words})
            if count:
                why["nodes"] = f"{count} nodes in {name} (for `place` and `emit`: {HOSTS})"
                return "", count
    return "", 0


def _nodes(scheduler: Scheduler, why: dict[str, str]) -> int:
    """Nodes of the batch system that can run jobs; 0: unknown."""
    try:
        done = subprocess.run(scheduler.ask, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return 0
    up = set(scheduler.ready.findall(done.stdout))
    if done.returncode or not up:
        return 0
    why["nodes"] = f"{len(up)} nodes can run jobs, as {scheduler.ask[0]} tells"
    return len(up)


def project_text(found: Discovered, by_hand: Mapping[str, str], tables: str = "") -> str:
    """The project file as TOML. What was not found stands there as a comment.

    by_hand, tables: what stays of an older file (adapters/project/kept.py).
    """
    lines = [f"store = {json.dumps(found.store)}  # {found.why.get('store') or 'a guess'}"]
    lines.append(f"data_root = [{json.dumps(found.data_root)}]")
    if found.engine:
        lines.append(f"engine = {json.dumps(found.engine)}  # {found.why['engine']}")
    if found.hosts:
        lines.append(f"hosts = {json.dumps(found.hosts)}  # {found.why['nodes']}")
    hints = {
        "map": '# map = "site.toml"  # names of storage classes or pools (docs: stores)',
        "cluster": '# cluster = "cluster.toml"  # nodes, links, disks: with it `run` makes plans',
    }
    if found.store in CLUSTERS:
        ready = json.dumps(CLUSTERS[found.store])
        hints["cluster"] = f"cluster = {ready}  # ready-made; `tracehint calibrate` fits it to runs"
    lines += [by_hand.get(key, hint) for key, hint in hints.items()]
    return "\n".join(_plain(line) for line in lines) + "\n" + (f"\n{tables}" if tables else "")


def _plain(line: str) -> str:
    """Without control characters: names of directories end up in comments."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", line)
