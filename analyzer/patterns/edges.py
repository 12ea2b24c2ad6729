"""Table `patterns`: the labels of the files, and their copies on the edges they hold for.

On an edge into a reader that was set aside as a peek only those labels hold that do not rest
on who read: gather and concurrently_shared. All others hold on every edge of their file (a
reduce's files have one reader that counts, a distribute's one producer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import order_by
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.execution.threads import compute_all
from tracehint.analyzer.flow.ranges import expand
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.patterns.choice import Chosen
from tracehint.analyzer.patterns.evidence import EvidenceTexts, placements, words
from tracehint.analyzer.patterns.groups import Around
from tracehint.analyzer.patterns.rows import PATTERNS, Floats, Ints, KeptEdges, Labels, code

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 1 << 18  # labels of edges
_ALWAYS = (code("gather"), code("concurrently_shared"))


@dataclass
class Decided:
    """The labels with all that is known about them; `ordered` is a factor of `confidence`."""

    labels: Labels
    chosen: Chosen
    texts: EvidenceTexts
    confidence: Floats
    ordered: Floats


def patterns_table(decided: Decided, ids: Ints, links: KeptEdges, resources: Resources) -> pa.Table:
    """Table `patterns` of analyzer.model: the files' own labels, sorted by file, then the edges'.

    `ids` are the files. The text columns are dictionaries: few texts are distinct, and the
    edges copy numbers.
    """
    import pyarrow as pa

    give_back()
    labels, primary = decided.labels, decided.chosen.primary
    order = order_by(labels.file, 1 - primary.astype(np.int64), labels.pattern, labels.group)
    names = placements(decided.chosen)
    own = _columns(decided, order, decided.texts.full, ids, names)
    own["edge"] = pa.nulls(len(order), pa.int64())
    own["primary"], own["confidence"] = primary[order], decided.confidence[order]
    files = _as_table(own)
    own.clear()
    give_back()
    edges, rows = _on_edges(labels.take(order), links, len(ids))
    give_back()

    def copied(number: int) -> pa.Table:
        some = slice(number * _AT_ONCE, (number + 1) * _AT_ONCE)
        edge, at = edges[some], order[rows[some]]
        columns = _columns(decided, at, decided.texts.short, ids, names)
        columns["edge"], columns["primary"] = links.edge[edge], primary[at] | links.aside[edge]
        doubt = np.where(links.uncertain[edge], 0.5, 1.0)
        columns["confidence"] = decided.confidence[at] / decided.ordered[at] * doubt
        return _as_table(columns)

    blocks = range(-(-len(edges) // _AT_ONCE))
    return pa.concat_tables([files, *compute_all(copied, blocks, resources, "labels of edges")])


def _on_edges(labels: Labels, links: KeptEdges, files: int) -> tuple[Ints, Ints]:
    """(row of the edge, row of the label) in the order of the edges; labels are sorted."""
    count = np.bincount(labels.file, minlength=files)
    first = np.cumsum(count) - count
    order = order_by(links.edge)
    file = links.file[order]
    edge, label = expand(first[file], first[file] + count[file])
    edge = order[edge]
    if links.aside.any():
        keep = ~links.aside[edge] | np.isin(labels.pattern[label], _ALWAYS)
        edge, label = edge[keep], label[keep]
    return edge, label


def _columns(
    decided: Decided, at: Ints, text: Ints, ids: Ints, names: dict[int, str]
) -> dict[str, Any]:
    """What is the same at a file and at its edges."""
    import pyarrow as pa

    labels, chosen = decided.labels, decided.chosen
    group = labels.group[at]

    def word(codes: Ints, known: Any) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), known)

    columns = {
        "file": ids[labels.file[at]],
        "pattern": word(labels.pattern[at], list(PATTERNS)),
        "group": pa.array(group + 1, mask=group < 0),
        "evidence": word(text[at], decided.texts.texts),
        "saves_bytes": chosen.saves[at],
        "saves_wait_bytes": chosen.saves_wait[at],
        "runner_up_saves_bytes": chosen.runner_up_saves[at],
    }
    for name in ("placement", "runner_up"):
        codes, known = words(getattr(chosen, name), names)
        columns[name] = word(codes[at], known)
    return columns


def _as_table(columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    from tracehint.analyzer.model import PATTERNS as SCHEMA

    return pa.table([pa.array(columns[name]) for name in SCHEMA.names], schema=SCHEMA)


def groups_table(
    around: Around, decided: Decided, evidence: pa.Array, tasks: Ints, ids: Ints
) -> pa.Table:
    """Table `groups` of analyzer.model; `tasks` and `ids` are those of the tasks and the files."""
    import pyarrow as pa

    from tracehint.analyzer.model import GROUPS

    labels = decided.labels
    inside = np.flatnonzero(labels.group >= 0)
    order = inside[order_by(labels.group[inside], labels.file[inside])]
    ends = np.cumsum(np.bincount(labels.group[inside], minlength=len(around)))
    primary = np.zeros(len(around), bool)
    primary[labels.group[inside[decided.chosen.primary[inside]]]] = True
    members = pa.ListArray.from_arrays(
        pa.array(np.append(0, ends), pa.int32()), pa.array(ids[labels.file[order]])
    )
    columns = [
        np.arange(1, len(around) + 1), pa.array(PATTERNS).take(pa.array(around.pattern)),
        tasks[around.task], members, around.bytes, primary, evidence,
    ]  # fmt: skip  # a table
    return pa.table([pa.array(c) for c in columns], schema=GROUPS)
