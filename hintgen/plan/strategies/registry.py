"""The strategies, in the order of the table that `tracehint plan` prints. One line each."""

from __future__ import annotations

from tracehint.hintgen.plan.model import Strategy
from tracehint.hintgen.plan.strategies import (
    default,
    local,
    local_reduce,
    paper,
    partition,
    per_file,
    sites,
    together,
)

STRATEGIES: tuple[Strategy, ...] = (
    Strategy("default", "what the store does by itself", default.make, simple=True),
    Strategy("local-writes", "files on their writer's node", local.writes, simple=True),
    Strategy("local-first", "the same, tasks where their input lies", local.first, simple=True),
    Strategy("local-reduce", "local-first, gathered files together", local_reduce.make),
    Strategy("local-together", "local-first, what is read together, copies", together.make),
    Strategy("per-file", "hints learned file by file", per_file.placed),
    Strategy("per-file-only", "the same, tasks on any node", per_file.alone),
    Strategy("paper", "the published table, by pattern", paper.make),
    Strategy("partition", "the graph in parts, one a node", partition.cuts),
    Strategy("partition-early", "the same, gathered files at their reader", partition.early),
    Strategy("partition-copies", "partition, copies of what most parts read", partition.copied),
    Strategy("sites", "parts within sites, few bytes between sites", sites.make),
)
DEFAULT = STRATEGIES[0].name
