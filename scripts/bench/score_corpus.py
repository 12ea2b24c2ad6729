"""Hint transfer over all pairs of the same workflow in the WfInstances corpus.

    make bench-transfer          all pairs, and the tables of docs/reference/hint-transfer.md
    python -m scripts.bench.score_corpus [--only TEXT] [--pairs N] [--write PAGE]

Rules are learned on one instance and scored on every other instance of the
workflow. nf-core has one instance per pipeline in the corpus: its other run is
the same with new work directories (every hash in a path replaced).
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from scripts.bench.page import into_page
from tests.support.wfinstances import Instance, analysis_of, corpus

from tracehint.hintgen.compare.score import Score, compare, predict_hints, why_wrong
from tracehint.hintgen.hint_columns import PreparedRun, baseline, prepare
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.learn.facts import facts_of
from tracehint.hintgen.learn.rules import LearnOptions, learn
from tracehint.hintgen.learn.safety import NO_LIMITS
from tracehint.hintgen.match.match import Matcher
from tracehint.hintgen.text.masks import shapes_of

FREE = LearnOptions(limits=NO_LIMITS)
ALL = 10**9
MODES = ("graph", "renamed", "names", "path", "types")


@dataclass
class Run:
    """One instance: to learn from, to score on, and both with renamed types."""

    name: str
    first: Instance
    other: Instance
    made: dict[str, tuple[HintFile, pa.Table]] = field(default_factory=dict)
    seen: dict[str, PreparedRun] = field(default_factory=dict)

    def rules(self, salt: str) -> tuple[HintFile, pa.Table]:
        """Return rules of the run and its facts, with types hashed with the salt."""
        if salt not in self.made:
            analysis = analysis_of(self.first, hash_types=salt)
            self.made[salt] = learn([analysis], FREE), facts_of(analysis)
        return self.made[salt]

    def truth(self, salt: str) -> PreparedRun:
        """Return the run prepared for scoring."""
        if salt not in self.seen:
            self.seen[salt] = prepare(analysis_of(self.other, hash_types=salt))
        return self.seen[salt]


@dataclass
class Family:
    """Results of one workflow: (precision, recall) per pair, and reasons of wrong units."""

    runs: int = 0
    results: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    units: Counter[str] = field(default_factory=Counter)


def fresh_work_directories(instance: Instance) -> Instance:
    """Return the same run with other hashes in its paths."""
    text = json.dumps(instance)

    def other(found: re.Match[str]) -> str:
        length = len(found[0].replace("/", ""))
        fresh = hashlib.sha256(b"fresh" + found[0].encode()).hexdigest()[:length]
        return f"/{fresh[:2]}/{fresh[2:]}/" if found[0].startswith("/") and found[2] else fresh

    pattern = r"/([0-9a-f]{2})/([0-9a-f]{30})/|(?<![0-9a-zA-Z])[0-9a-f]{30,32}(?![0-9a-zA-Z])"
    return copy.deepcopy(json.loads(re.sub(pattern, other, text)))


def pairs(items: list[Run], most: int) -> Iterator[tuple[Run, Run]]:
    """Yield (run learned from, run scored on); at most `most`, chosen by a fixed seed."""
    found = [(a, b) for a in items for b in items if a is not b or len(items) == 1]
    yield from found if len(found) <= most else random.Random(1).sample(found, most)


def results_of(learned: Run, other: Run) -> dict[str, Score]:
    """Return mode -> comparison of the rules' hints with those of the other run's analysis."""
    rules, facts = learned.rules("")
    matcher = Matcher(rules)
    seen = other.truth("")
    said = {
        mode: predict_hints(
            matcher, seen, graph=mode == "graph", names=mode == "names", nodes=seen.nodes
        )
        for mode in ("graph", "names", "path")
    }
    said["types"] = baseline(facts, seen)
    scores = {mode: compare(hints, seen.true, seen.size, ALL) for mode, hints in said.items()}
    strange = other.truth("t")
    stranger = Matcher(learned.rules("s")[0])
    renamed = predict_hints(stranger, strange, graph=True, nodes=strange.nodes)
    scores["renamed"] = compare(renamed, strange.true, strange.size, ALL)
    return scores


def uses(facts: pa.Table) -> dict[bytes, set[str]]:
    """Return shape of names -> its uses in the run."""
    shapes = shapes_of(facts["path"].combine_chunks()).to_pylist()
    found: dict[bytes, set[str]] = defaultdict(set)
    for shape, use in zip(shapes, facts["use"].to_pylist(), strict=True):
        found[shape].add(use)
    return found


def reasons(score: Score, learned: pa.Table, other: pa.Table) -> Counter[str]:
    """Count the reasons of wrong units, as far as the two runs show them."""
    known = uses(learned)
    paths = other["path"].to_pylist()
    shapes = shapes_of(other["path"].combine_chunks()).to_pylist()
    at = {
        path: (shape, use)
        for path, shape, use in zip(paths, shapes, other["use"].to_pylist(), strict=True)
    }
    found: Counter[str] = Counter()
    for path, name, said, wanted in score.wrong:
        shape, use = at[path]
        text = why_wrong(name, said, wanted)
        if text.startswith("another "):
            found[text] += 1
        elif shape not in known:
            found["no name of that shape in the run learned from"] += 1
        elif use not in known[shape]:
            found["the same names are used otherwise there"] += 1
        elif len(known[shape]) > 1:
            found["names of one shape are used in several ways"] += 1
        else:
            found[text] += 1
    return found


def family_of(items: list[Run], most: int) -> Family:
    """Score all pairs of one workflow."""
    family = Family(runs=len(items))
    for learned, other in pairs(items, most):
        scores = results_of(learned, other)
        for mode, score in scores.items():
            total = score.total.as_json()
            family.results[mode].append((total["precision"], total["recall"]))
            family.units[mode] += len(other.truth("").true)
            if mode != "types" and score.wrong:
                facts = [learned.rules("")[1], other.truth("").facts]
                family.reasons[mode] += reasons(score, *facts)
    return family


def cell(values: list[float]) -> str:
    """Format worst and mean; one figure if all values are the same."""
    low, mean = min(values), sum(values) / len(values)
    return f"{low:.4f}" if low == max(values) else f"{low:.4f} / {mean:.4f}"


def figures(name: str, family: Family) -> str:
    """Return one row of the first table."""
    columns = [cell([pair[k] for pair in family.results[mode]]) for mode in MODES for k in (0, 1)]
    count, all_pairs = len(family.results["path"]), max(1, family.runs * (family.runs - 1))
    part = str(count) if count == all_pairs else f"{count} of {all_pairs}"
    return "| " + " | ".join([name, str(family.runs), part, *columns]) + " |"


def losses(name: str, family: Family) -> list[str]:
    """Return rows of the second table: wrong units by reason, as a share of all units."""
    return [
        f"| {name} | {mode} | {100 * count / family.units[mode]:.2f} % | {text} |"
        for mode in ("graph", "renamed", "names", "path")
        for text, count in family.reasons[mode].most_common()
    ]


HEAD = (
    "| workflow | runs | pairs | graph: precision | recall | renamed types: precision | recall "
    "| all names: precision | recall | each path: precision | recall | types only: precision "
    "| recall |\n" + "|---" * 13 + "|"
)
LOSSES_HEAD = "| workflow | rules know | wrong units | why |\n|---|---|---|---|"


def main() -> None:
    """Print the tables, or write them to a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="paths of the corpus that contain this")
    parser.add_argument("--pairs", type=int, default=ALL, help="per workflow, chosen at random")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    folder = Path(os.environ.get("TRACEHINT_DATA", "../shared/data")) / "wfinstances"
    runs: dict[str, list[Run]] = defaultdict(list)
    for workflow, name, instance in corpus(folder, options.only):
        if workflow == "helloworld":
            continue  # two different examples, no workflow
        again = fresh_work_directories(instance) if workflow.startswith("nf-core") else instance
        runs[workflow].append(Run(name, instance, again))
    rows, why = [HEAD], [LOSSES_HEAD]
    for workflow in sorted(runs, key=lambda name: (name.startswith("nf-core"), name)):
        family = family_of(runs.pop(workflow), options.pairs)
        rows.append(figures(workflow, family))
        why += losses(workflow, family)
        print(rows[-1], file=sys.stderr, flush=True)
    tables = {"figures": "\n".join(rows), "losses": "\n".join(why)}
    if options.write:
        for name, table in tables.items():
            into_page(options.write, f"bench-transfer: {name}", table)
    else:
        print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
