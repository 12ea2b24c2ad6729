"""Small hint files with a plan, and workflows for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.hints import hint_file
from tracehint.hintgen.hints.hintfile import dump
from tracehint.hintgen.hints.model import FilePart, HintFile, Plan, PlanSeconds, Rule, TaskPart

HOSTS = 'start = "here"\n[[host]]\nname = "node1"\nslots = 2\n[[host]]\nname = "node2"\nslots = 2\n'


def planned(
    tasks: Mapping[str, int],
    files: Sequence[FilePart] = (),
    rules: Sequence[Rule] = (),
    strategy: str = "partition",
) -> HintFile:
    """Return a hint file with a plan that assigns these tasks to their parts."""
    plan = Plan(
        cluster="two nodes",
        strategy=strategy,
        seconds=PlanSeconds(34.0, 13.0),
        parts=max(tasks.values(), default=-1) + 1,
        tasks=tuple(TaskPart(name, part) for name, part in tasks.items()),
        files=tuple(files),
    )
    base = hint_file(*rules)
    return HintFile(base.learned_from, base.parameters, base.rules, plan=plan)


def save_plan(folder: Path, hints: HintFile) -> Path:
    """Write the hint file and the host file; return the hint file's path."""
    path = folder / "plan.json"
    dump(hints, path, force=True)
    (folder / "hosts.toml").write_text(HOSTS)
    return path
