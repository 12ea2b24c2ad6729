"""The published powers of a node, and the cost of frequency scaling: BLAST and a pipeline."""

from __future__ import annotations

import numpy as np
from scripts.bench.papers.blast import cluster, searching
from scripts.bench.papers.patterns import WORKERS, pipeline
from tests.support.predicting import MB, Task, plain, workload

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Placement, Workload, default, law
from tracehint.analyzer.predict.prediction import Configuration, Prediction, predict

# watts of an idle node, and in addition while tasks, the store, the link are active
IDLE, COMPUTE, STORAGE, NETWORK = 91.6, 33.6, 37.5, 36.1
GHZ = (1.2, 1.8, 2.3)
# published: additional energy of BLAST at the lowest frequency; the pipeline needs no more
BLAST_MORE = 0.855


def powers(compute: float) -> str:
    """Return the keys of [nodes] as TOML."""
    rest = f"storage_watts = {STORAGE}\nnetwork_watts = {NETWORK}"
    return f"idle_watts = {IDLE}\ncompute_watts = {compute}\n{rest}"


def at(work: Workload, ghz: float, *, power_falls: bool) -> Prediction:
    """Predict the run at a frequency; `power_falls`: the power of computing falls with it."""
    share = ghz / GHZ[-1]
    watts = powers(COMPUTE * share if power_falls else COMPUTE)
    machines = cluster(WORKERS, node=f"{watts}\nspeed = {share}")
    return predict(work, [Configuration("", machines, "default", default)], runs=3)[0]


def joules(found: Prediction) -> float:
    """Return the energy of all nodes."""
    assert found.energy_joules is not None
    return found.energy_joules


def ratios(work: Workload, *, power_falls: bool) -> dict[float, float]:
    """Return frequency -> energy as a ratio to that at the highest frequency."""
    used = {ghz: joules(at(work, ghz, power_falls=power_falls)) for ghz in GHZ}
    return {ghz: one / used[GHZ[-1]] for ghz, one in used.items()}


def workloads() -> dict[str, Workload]:
    """Return BLAST, bound by computing, and the pipeline, bound by data."""
    return {"BLAST": searching(), "pipeline": pipeline(WORKERS)}


def by_hand() -> Prediction:
    """Predict a task that computes for 20 s and writes for 10 s to the other of two nodes."""
    steps: list[tuple[str, object]] = [("compute", 20), ("write", "x")]
    work = workload([Task("a", steps)], {"x": 100 * MB})

    def there(work: Workload, _: Cluster) -> Placement:
        other = np.full(work.files, 1, np.int32)
        plan = np.zeros(work.tasks, np.int32)
        laws = np.full(work.files, law("node"), np.int32)
        return Placement("there", law=laws, target=other, plan=plan, scheduler="plan")

    return predict(work, [Configuration("", plain(2, node=powers(COMPUTE)), "", there)], runs=1)[0]
