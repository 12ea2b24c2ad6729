"""Recommended actions: the most important findings, each with an edit of the workflow file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.lint.edits import EDIT_KINDS, edit_of, types_of
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.hintgen.gain import Baseline
    from tracehint.hintgen.lint.finding import Finding

MAX_ACTIONS = 3
MAX_NAME_LENGTH = 60  # maximum length of a template in a sentence
MAX_TYPES = 3  # maximum number of task types in a sentence
CORRECTNESS = "correctness"


@dataclass(frozen=True)
class Action:
    """A recommended action: a sentence, its saving, and the lines for the workflow file (empty if
    the engine is unknown). `code` and `fingerprint` identify the finding behind it."""

    text: str
    saves: str
    edit: str
    code: str
    fingerprint: str

    @property
    def saves_text(self) -> str:
        """Text after the sentence: the saving, or that the action is about correctness."""
        return self.saves if self.saves == CORRECTNESS else f"saves {self.saves}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for the page, the edit as lines."""
        return {**vars(self), "edit": self.edit.splitlines()}


def actions(
    findings: Sequence[Finding],
    baseline: Baseline | None,
    engine: str = "",
    *,
    staging: bool = False,
    nodes: Mapping[str, str] = {},
) -> list[Action]:
    """Return at most MAX_ACTIONS: errors, then gains larger than their uncertainty, then wrong
    declarations, of which at least one is included if there are any. `staging`: the store keeps
    no files on nodes; `nodes`: the node of each task type."""
    errors = [f for f in findings if f.severity == "error" and f.code in _TEXTS]
    gains = [
        f
        for f in findings
        if f not in errors
        and f.code in _PLACEMENT
        and f.gain is not None
        and baseline is not None
        and f.gain.pays(baseline)
    ]
    wrong = [f for f in findings if f not in errors and f.code in _WRONG_DECLARATIONS]
    wrong = _merge_by_files(sorted(wrong, key=lambda f: _WRONG_DECLARATIONS.index(f.code)))
    chosen = [*errors, *gains][: MAX_ACTIONS - bool(wrong)]
    chosen += wrong[: MAX_ACTIONS - len(chosen)]
    near = _group_types_by_node([f for f in chosen if EDIT_KINDS.get(f.code) == "together"])
    found = [_make_action(f, baseline, engine, near, nodes, staging=staging) for f in chosen]
    shown = [action.edit for action in found]
    return [
        replace(action, edit="") if action.edit in shown[:at] else action  # lines are printed once
        for at, action in enumerate(found)
    ]


def _merge_by_files(findings: Sequence[Finding]) -> list[Finding]:
    """Merge findings of one rule about the same files, with the task types of all."""
    found: dict[tuple[str, str], Finding] = {}
    for f in findings:
        first = found.setdefault((f.code, f.template), f)
        types = ", ".join(dict.fromkeys([*types_of(first.consumers), *types_of(f.consumers)]))
        found[f.code, f.template] = replace(first, consumers=types)
    return list(found.values())


def _group_types_by_node(findings: Sequence[Finding]) -> list[list[str]]:
    """Group the task types to run on one node; each type is in one group."""
    groups: list[list[str]] = []
    for f in findings:
        before, after = types_of(f.producers), types_of(f.consumers)
        for group in [group for group in groups if not {*before, *after}.isdisjoint(group)]:
            groups.remove(group)
            before = [name for name in before if name not in group] + group
        groups.append([*dict.fromkeys([*before, *after])])
    return groups


def _make_action(
    finding: Finding,
    baseline: Baseline | None,
    engine: str,
    near: Sequence[list[str]],
    nodes: Mapping[str, str],
    *,
    staging: bool,
) -> Action:
    saves = "" if finding.code in _NO_CORRECTNESS else CORRECTNESS
    if finding.code in _PLACEMENT and finding.gain is not None and baseline is not None:
        saves = finding.gain.text(baseline)
    own = {*types_of(finding.producers), *types_of(finding.consumers)}
    group = next((group for group in near if not own.isdisjoint(group)), ())
    lines = edit_of(finding, engine, staging=staging, near=group, nodes=nodes)
    return Action(_TEXTS[finding.code](finding), saves, lines, finding.code, finding.fingerprint)


def _format_types(text: str) -> str:
    names = types_of(text)
    shown = ", ".join(terminal(name) for name in names[:MAX_TYPES])
    return shown + (f" and {len(names) - MAX_TYPES} more" if len(names) > MAX_TYPES else "")


def _files(finding: Finding) -> str:
    """Describe a template with the number and bytes of its files."""
    name = shorten(terminal(finding.template), MAX_NAME_LENGTH)
    if finding.files == 1:
        return f"{name} ({size(finding.bytes)})"
    return f"{name} ({plural(finding.files, 'file')}, {size(finding.bytes)})"


def _describe_local(f: Finding) -> str:
    return f"Keep {_files(f)} on the producer's node; run {_format_types(f.consumers)} there"


def _describe_collocation(f: Finding) -> str:
    return f"Store {_files(f)} on one node; run {_format_types(f.consumers)} there"


def _describe_copies(f: Finding) -> str:
    return f"Keep copies of {_files(f)} near {_format_types(f.consumers)}"


def _describe_undeclared(f: Finding) -> str:
    race = "; tasks race for them" if f.severity == "error" else ""
    name = shorten(terminal(f.template), MAX_NAME_LENGTH)
    return f"Declare {name} as input of {_format_types(f.consumers)} ({f.files} undeclared{race})"


_TEXTS: dict[str, Callable[[Finding], str]] = {
    "TP001": _describe_copies,
    "TP002": _describe_collocation,
    "TP003": _describe_local,
    "TP004": lambda f: f"Align blocks of {_files(f)} with the parts of its readers",
    "TP005": lambda f: f"Align blocks of {_files(f)} with the parts of its writers",
    "TP007": lambda f: f"Start {_format_types(f.consumers)} where {_files(f)} is stored",
    "TP008": lambda f: f"Replace the hint on {_files(f)}: it does not match its use",
    "TD001": _describe_undeclared,
    "TD002": lambda f: (
        f"Declare {shorten(terminal(f.template), MAX_NAME_LENGTH)} as output of "
        f"{_format_types(f.producers)}"
    ),
    "TD003": lambda f: (
        f"Remove the input {shorten(terminal(f.template), MAX_NAME_LENGTH)} of "
        f"{_format_types(f.consumers)} (never read)"
    ),
    "TH005": lambda f: (
        f"Check {_files(f)}: written by a failed task, read by {_format_types(f.consumers)}"
    ),
    "TH006": lambda f: (
        f"Let {_format_types(f.consumers)} wait for {_files(f)}: it is read while being written"
    ),
}
_PLACEMENT = ("TP001", "TP002", "TP003", "TP004", "TP005", "TP007", "TP008")
_WRONG_DECLARATIONS = ("TH005", "TH006", "TD001", "TD002", "TD003")  # in this order
_NO_CORRECTNESS = ("TD003",)  # neither a saving nor a matter of correctness
