"""The cluster on which gains are simulated: the user's, as far as it is known, or a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.project.discover import CLUSTERS, LOCAL, store_of
from tracehint.errors import TracehintError
from tracehint.schemas.plain import ConfiguredName

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.summary.gain import Where

MODELS = CLUSTERS | {"nfs": "nfs"}  # `run` makes no plan for NFS
STRIPED = ("lustre", "beegfs7", "beegfs8")  # stores whose stripe layout an emitter sets
STAGING = "tracehint emit --workflow-engine slurm --local-dir DIR"
_WAIT_S = 2  # for an answer of the batch system


def where_of(
    given: str | None, nodes: int | None, analysis: Analysis, source: str | Path = ""
) -> Where:
    """Return the cluster `given` (--cluster, tracehint.toml), else the built-in model of the run's
    store, with `nodes`, or as many nodes as the run, the host file or the batch system has, or the
    model's own number. `source`: the bundle. Raises InputError."""
    from tracehint.adapters.stores.registry import open_store
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.hintgen.summary.gain import BUILT_IN, Where

    store = "" if given is not None else recorded_store(source)
    cluster = read_cluster(given or MODELS.get(store, BUILT_IN))
    own = users_own(given)
    parts = [] if own else ["built-in model"]
    if isinstance(given, ConfiguredName):
        parts.append("tracehint.toml")
    if nodes is None and given is None:
        nodes, counted = _nodes(analysis)
        parts += [counted] if nodes else []
    where = Where(
        cluster.with_nodes(nodes) if nodes else cluster,
        ", ".join(parts),
        not own,
        given=given or "",
        takes_hints=not store or open_store(store).about.state != "nothing",
    )
    return where if not where.staging else _staging_gain(where, store)


def _staging_gain(where: Where, store: str) -> Where:
    """Return `where` for a store that keeps no file on a node, with a remark on the remedies."""
    from dataclasses import replace

    name = store or where.cluster.name
    remark = f"{name} keeps no file on a node: intermediate files go to node-local storage, their"
    remark += f" readers start there (tracehint plan, then {STAGING}; Nextflow: scratch)"
    if store in STRIPED:
        remark += f"; stripe layouts: tracehint emit --store {store}"
    return replace(where, remark=remark, takes_hints=False)


def recorded_store(source: str | Path) -> str:
    """Return the store of the run's data, from the mounts of its first host; empty: unknown, or a
    disk of that host."""
    from tracehint.schemas.manifest import read_manifest

    try:
        manifest = read_manifest(Path(source))
        mounts = manifest.hosts[0].mounts if manifest.hosts else []
        root = (manifest.data_roots or [manifest.cwd])[0]
        store, _ = store_of(Path(root), mounts)
    except (TracehintError, OSError, ValueError):
        return ""
    return "" if store == LOCAL else store


def _nodes(analysis: Analysis) -> tuple[int | None, str]:
    """Return the number of nodes and its source; the run's parallel tasks are not counted."""
    from tracehint.adapters.project.discover import count_nodes

    hosts = len(analysis.run.get("hosts") or [])
    if hosts > 1:
        return hosts, "nodes of the recorded run"
    allocated = os.environ.get("SLURM_JOB_NUM_NODES", "")
    if allocated.isdecimal() and 1 < int(allocated) < 10_000:
        return int(allocated), "nodes of the allocation"
    count, counted = count_nodes(Path.cwd(), _WAIT_S)
    return count or None, counted


def users_own(given: str | None) -> bool:
    """Whether `--cluster` names the user's cluster, not a built-in model with placeholders."""
    from tracehint.analyzer.predict.cluster_file import is_ready_made

    return given is not None and not is_ready_made(given)
