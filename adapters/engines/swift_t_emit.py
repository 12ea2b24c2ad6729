"""Swift/T: a module with location helpers and, per rule, the annotated call as a comment.

Calls stand in the user's own script, so they can only be shown. What is code in this file is
constant, but for the table of hosts that `tracehint locate --format json` reported
(`--locations FILE`) and that of a plan's tasks (`--hosts FILE`); their strings pass one escaper.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.plan import Plan
from tracehint.hintgen.text.escape import comment
from tracehint.hintgen.text.textfile import TextFile
from tracehint.version import __version__

_PLACES = TextFile(
    kind="A list of locations",
    limit="hints-bytes",
    check="Check --locations.",
    remedy="Write it again: tracehint locate --format json",
)
# pattern -> (strictness, what to do); HARD only where the data are on that node alone
LOCATIONS: dict[str, tuple[str, str]] = {
    "pipeline": ("soft", "run the consumer on the node that holds the file"),
    "reduce": ("soft", "run the consumer on the node that holds most of the group"),
    "gather": ("soft", "run the consumer on the node that holds most of the file"),
    "stage_in": ("soft", "run the one reader where the input lies"),
    "scatter": ("soft", "run each reader on the node that holds its region"),
    "distribute": ("soft", "run each consumer on the node that holds its file"),
}
HELPERS = """\
import location;

// SOFT: the task may run elsewhere when the node is busy. HARD: only there.
(location l) tracehint_soft(string host) {
  l = location(hostmapOneWorkerRank(host), SOFT, NODE);
}
(location l) tracehint_hard(string host) {
  l = location(hostmapOneWorkerRank(host), HARD, NODE);
}
"""


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The Swift/T module, to -o or standard output."""
    text, gaps = module(hints, read_locations(request.locations) if request.locations else {})
    remarks = ["Put the annotations before the calls of your script; see the comments."]
    if hints.plan is not None and hints.plan.tasks:
        nodes = nodes_of(hints.plan, request.hosts)
        text += "\n".join(["", *planned_tasks(hints.plan, nodes), ""])
        if not nodes:
            remarks.append("The plan's tasks have parts and no nodes yet: give --hosts FILE.")
    return Emitted(files={request.output: text.encode()}, gaps=merge_gaps(gaps), remarks=remarks)


def planned_tasks(plan: Plan, nodes: Mapping[int, Host]) -> list[str]:
    """A table of the plan's tasks: their nodes, or their parts where no node is known.

    Top-level arrays: the calls that use them stand at the top level, or in loops there.
    """
    lines = [f"// a plan for {comment(plan.cluster)}: {comment(plan.strategy)}"]
    if not nodes:
        lines += ["int tracehint_part[string];"]
        rows = {task.name: str(task.part) for task in plan.tasks}
        lines += [f"tracehint_part[{quoted(n)}] = {rows[n]};" for n in sorted(rows)]
        return lines
    lines += [
        '// @location=tracehint_soft(tracehint_node["TASK"]) call(...);',
        "string tracehint_node[string];",
    ]
    names = {quoted(task.name): quoted(nodes[task.part].name) for task in plan.tasks}
    return [*lines, *(f"tracehint_node[{name}] = {names[name]};" for name in sorted(names))]


def module(hints: HintFile, hosts: Mapping[str, str]) -> tuple[str, list[Gap]]:
    """The module's text; patterns without an annotation are gaps."""
    lines = [f"// tracehint {__version__}: locations for Swift/T", "", HELPERS]
    gaps: list[Gap] = []
    if hosts:
        lines += ["string tracehint_host[string];"]
        lines += [f"tracehint_host[{quoted(p)}] = {quoted(h)};" for p, h in sorted(hosts.items())]
        lines.append("")
    for rule in hints.rules:
        lines.append(f"// {comment(rule.id)} {comment(rule.pattern)}: {comment(rule.template)}")
        if rule.pattern not in LOCATIONS or not rule.consumers:
            reason = "no call whose place would matter"
            lines.append(f"//   not said: {reason}")
            gaps.append(Gap(hint=rule.pattern, level="none", reason=reason))
            continue
        lines += _calls(rule, hosts)
    return "\n".join(lines) + "\n", gaps


def _calls(rule: Rule, hosts: Mapping[str, str]) -> list[str]:
    strictness, what = LOCATIONS[rule.pattern]
    example = rule.examples[0] if rule.examples else rule.template
    where = f"tracehint_host[{quoted(example)}]" if example in hosts else '"HOST"'
    lines = [f"//   {what}; tracehint locate tells the HOST"]
    for consumer in rule.consumers[:5]:
        call = f"{identifier(consumer)}(...)"
        lines.append(f"//   @location=tracehint_{strictness}({where}) {call};")
    return lines


def identifier(text: str) -> str:
    """A task type as a Swift/T name."""
    kept = re.sub(r"[^A-Za-z0-9_]", "_", text)[:60]
    return kept if re.match(r"[A-Za-z]", kept) else f"task_{kept}"


def quoted(text: str) -> str:
    """A Swift/T string literal of printable ASCII; other characters become `?`."""
    plain = re.sub(r"[^ -~]", "?", text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_locations(path: Path) -> dict[str, str]:
    """Path -> first host, from the JSON of `tracehint locate`.

    Files below the working directory have names from there on, as the workflow's tasks see them:
    the table goes with the folder wherever that is moved.
    """
    data = _PLACES.json(path)
    here = f"{Path.cwd()}/"
    try:
        rows = [row for row in data["files"] if row["nodes"]]
        return {
            os.path.normpath(str(row["path"])).removeprefix(here): str(row["nodes"][0])
            for row in rows
        }
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path} is not what `tracehint locate --format json` writes", "Write it again."
        ) from error
