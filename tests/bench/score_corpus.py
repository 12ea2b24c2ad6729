"""Hint transfer over all pairs of the same workflow in the WfInstances corpus.

    TRACEHINT_DATA=../shared/data python tests/bench/score_corpus.py [--types names|hashes|salted]
        [--only TEXT] [--markdown]

Rules are learned on one instance and scored on every other instance of the
workflow. nf-core has one instance per pipeline in the corpus: there the other
run is the same with fresh work directories (every hash in a path replaced).
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.wfinstances import Instance, analysis_of, corpus
from tracehint.hintgen.facts import facts_of
from tracehint.hintgen.rules import LearnOptions, learn
from tracehint.hintgen.safety import NO_LIMITS
from tracehint.hintgen.score import prepare, score_prepared

FREE = LearnOptions(limits=NO_LIMITS)
COLUMNS = ("main", "by_path_alone", "baseline")


def fresh_work_directories(instance: Instance) -> Instance:
    """The same run with other hashes in its paths."""
    text = json.dumps(instance)

    def other(found: re.Match[str]) -> str:
        length = len(found[0].replace("/", ""))
        fresh = hashlib.sha256(b"fresh" + found[0].encode()).hexdigest()[:length]
        return f"/{fresh[:2]}/{fresh[2:]}/" if found[0].startswith("/") and found[2] else fresh

    pattern = r"/([0-9a-f]{2})/([0-9a-f]{30})/|(?<![0-9a-zA-Z])[0-9a-f]{30,32}(?![0-9a-zA-Z])"
    return copy.deepcopy(json.loads(re.sub(pattern, other, text)))


def pairs(items: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, str, Any]]:
    """(name, run learned from, name, run scored on)."""
    return [
        (a, learned, b, other)
        for a, learned, _ in items
        for b, _, other in items
        if a != b or len(items) == 1
    ]


def table(workflow: str, items: list[tuple[str, Any, Any]]) -> tuple[list[Any], list[Any]]:
    """(row of the table, the pairs below 0.95)."""
    rules: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    results = []
    for a, learned, b, other in pairs(items):
        if a not in rules:
            rules[a], facts[a] = learn([learned], FREE), facts_of(learned)
        results.append((a, b, score_prepared(rules[a], facts[a], other)))
    row: list[Any] = [workflow, len(items), len(results)]
    for column in COLUMNS:
        data = [r if column == "main" else r[column] for _, _, r in results]
        for what in ("precision", "recall"):
            values = [d[what] for d in data]
            row += [min(values), sum(values) / len(values)]
    below = [
        (a, b, d["precision"], d["recall"], d["wrong"][:3])
        for a, b, d in results
        if min(d["precision"], d["recall"]) < 0.95
    ]
    return row, below


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", choices=["names", "hashes", "salted"], default="names")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = Path(os.environ.get("TRACEHINT_DATA", "../shared/data")) / "wfinstances"
    runs: dict[str, list[tuple[str, Any, Any]]] = defaultdict(list)
    for workflow, name, instance in corpus(folder, options.only):
        salts = {"names": ("", ""), "hashes": ("s", "s"), "salted": ("s", "t")}[options.types]
        again = fresh_work_directories(instance) if workflow.startswith("nf-core") else instance
        learned = analysis_of(instance, hash_types=salts[0])
        runs[workflow].append((name, learned, prepare(analysis_of(again, hash_types=salts[1]))))
    print("| workflow | runs | pairs | rules P min/mean | R min/mean | path alone P | R "
          "| types only P | R |")  # fmt: skip
    print("|---" * 9 + "|")
    low = []
    for workflow, items in runs.items():
        row, below = table(workflow, items)
        cells = [f"{row[k]:.4f} / {row[k + 1]:.4f}" for k in range(3, len(row), 2)]
        print("| " + " | ".join([workflow, str(row[1]), str(row[2]), *cells]) + " |", flush=True)
        low += below
    for case in low:
        print("below 0.95:", *case)


if __name__ == "__main__":
    main()
