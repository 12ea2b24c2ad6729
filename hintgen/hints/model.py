"""Typed records of hint files, from which parsing, checks and the JSON Schema are derived
(docs/reference/hints.schema.json)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta, Struct

from tracehint.hintgen.gain import Baseline, Gain
from tracehint.hintgen.hints.uses import USES
from tracehint.hintgen.hints.vocabulary import HINT_NAMES

MAX_TYPES, MAX_NODES = 10_000, 1_000_000

Text = Annotated[str, Meta(max_length=16_384)]
Types = Annotated[tuple[Text, ...], Meta(max_length=MAX_TYPES)]
Template = Annotated[
    Text,
    Meta(
        description="Literal text with {n}, {uuid}, {date}, {hash}, {word}, {alnum}, {random}, "
        "{name}, {dirs}; \\\\, \\{, \\} and \\xNN are escapes."
    ),
]
HintKey = Annotated[Text, Meta(extra_json_schema={"enum": [*HINT_NAMES]})]
HintValue = Annotated[Text, Meta(extra_json_schema={"maxLength": 256})]
HintValues = Annotated[dict[HintKey, HintValue], Meta(min_length=1, max_length=len(HINT_NAMES))]
Use = Annotated[Text, Meta(extra_json_schema={"enum": [*USES]})]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Part = Annotated[int, Meta(ge=0, lt=1_000_000)]
Positive = Annotated[float, Meta(gt=0, lt=1e12)]
Number = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)] | float
Seconds = Annotated[float, Meta(ge=0, le=1e15)]
Steal = Literal["any", "unplanned"]  # all tasks, or only those without a part
When = Literal["create", "before_read", "staging", "any"]
Needs = Literal["", "use", "types"]
By = Literal["", "consumer", "producer"]
Bytes = Annotated[float, Meta(ge=0, le=1e21)]


@dataclass(frozen=True)
class TaskPart:
    """A task, by its name in the workflow, and its part."""

    name: Annotated[Text, Meta(min_length=1)]
    part: Part


@dataclass(frozen=True)
class FilePart:
    """A file with hints: its path below the data root as text (hintgen/hints/pathtext.py), its part
    (None: no single part) and its hints."""

    path: Annotated[Text, Meta(min_length=1)]
    part: Part | None
    hints: HintValues


@dataclass(frozen=True)
class PlanSeconds:
    """Predicted seconds; `default`: with the store's default placement."""

    default: Seconds
    planned: Seconds


@dataclass(frozen=True)
class PlanBytes:
    """Bytes over the network; null: unknown."""

    default: Bytes | None = None
    planned: Bytes | None = None


@dataclass(frozen=True)
class Plan:
    """A plan for the run of one known graph on a cluster. `parts` is 0 if no task is bound. Tasks
    and files that are not listed may run or be stored anywhere (a task best where its input is).
    `steal`: the tasks that an idle node may take: any, or only those without a part.
    """

    cluster: Text
    strategy: Text
    seconds: PlanSeconds
    network_bytes: PlanBytes = PlanBytes()
    parts: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    steal: Steal = "any"
    tasks: tuple[TaskPart, ...] = ()
    files: tuple[FilePart, ...] = ()


@dataclass(frozen=True)
class FolderHints:
    """Hints of a directory, regardless of its content: its path below the data root as text
    (hintgen/hints/pathtext.py), and hints."""

    path: Annotated[Text, Meta(min_length=1)]
    hints: HintValues


def sayable(path: bytes) -> bool:
    """Whether `path` is a valid path below the data root."""
    return {b"", b".", b".."}.isdisjoint(path.split(b"/")) and b"\0" not in path


HINTS_SCHEMA: Literal["tracehint.hints/1"] = "tracehint.hints/1"
INPUT = ""  # among a rule's producers: inputs of the workflow, which no task writes


class Formula(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Formula that computes a value for the scale of another run (hintgen/hints/mapping.py); empty:
    constant. `captures`: placeholders of the template, counted from 0, that name the group;
    `letters`: without their digits. `counts`: template, reads per file of it, reads per file of
    the rule in the run learned from."""

    fn: Literal["", "replicas", "group", "region"] = ""
    per: Annotated[float, Meta(ge=1e-3, lt=1e9)] = 0.0
    prefix: Text = ""
    captures: Annotated[tuple[Part, ...], Meta(max_length=48)] | None = None
    by: By = ""
    step: Annotated[int, Meta(gt=0, lt=1 << 62)] = 0
    letters: bool = False
    counts: Annotated[tuple[tuple[Template, Positive, Positive], ...], Meta(max_length=32)] = ()


# required and optional fields of each formula
FORMULAS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "": (frozenset(), frozenset()),
    "replicas": (frozenset({"fn", "per"}), frozenset({"counts"})),
    "group": (frozenset({"fn"}), frozenset({"prefix", "captures", "by", "letters"})),
    "region": (frozenset({"fn", "step"}), frozenset()),
}
CONSTANT = Formula()


class Conditions(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Conditions for a rule to apply.

    `needs`: "use": the path alone is ambiguous; applies only if the engine's graph declares the
        readers of the file; "types": only if the declared producing and consuming types match too.
    `min_size_bytes`: the rule does not apply to existing files that are smaller.
    `per_pair`: maximum number of files between two tasks, if the graph names the tasks; the rule
        does not apply to more. 0: any number.
    `beside`: templates of sibling files of the run, with the text of this one's placeholder as
        {name}; applies only if all names of the run are given and include the siblings.
    """

    needs: Needs = ""
    min_size_bytes: Count = 0
    beside: Annotated[tuple[Template, ...], Meta(max_length=16)] = ()
    per_pair: Count = 0


UNCONDITIONAL = Conditions()


@dataclass(frozen=True)
class Hint:
    """One store-independent hint, e.g. DP=local. `value`: the value for the observed run.

    `when`: create (before the first byte), before_read, staging, any.
    `level`: placement (an adapter should set it) or advisory (optional).
    """

    name: HintKey
    value: HintValue
    when: When
    formula: Formula = CONSTANT
    level: Literal["placement", "advisory"] = "placement"


Hints = Annotated[tuple[Hint, ...], Meta(max_length=16)]


@dataclass(frozen=True)
class Maker:
    """A program that identifies a task's type while the task runs.

    `word`: word of a process (analyzer/tasks/process_word.py), as text
    (hintgen/hints/pathtext.py); the outermost process of the task with a word in this list
    counts. `sure`: in the observed run, all files made by tasks of this type were made by such
    processes.
    """

    word: Annotated[Text, Meta(min_length=1)]
    type: Text
    sure: bool


@dataclass(frozen=True)
class Variant:
    """Hints of a rule for files with another use in the engine's graph.

    `learned`: observed in the run (otherwise derived from the definition of the pattern).
    """

    use: Use
    pattern: Text
    hints: Hints
    learned: bool


MAX_EXCLUDE = 64


class Evidence(TypedDict):
    """Statistics of the files of the run that a rule was learned from."""

    files: Count
    bytes: Count
    saves_bytes: NotRequired[Number]
    paying_files: NotRequired[Count]
    largest_group_bytes: NotRequired[Count]
    largest_file_bytes: NotRequired[Count]
    min_readers: NotRequired[Count]
    max_readers: NotRequired[Count]
    label_confidence: NotRequired[Number]
    level: NotRequired[Count]


@dataclass(frozen=True)
class Rule:
    """A rule for files that may not exist yet.

    `template` (`proj/p_tile_{n}.fits`) is authoritative; `regex` is its compiled form
    (full match, on the path below the data root, bytes read as Latin-1), for
    targets that need one. `exclude`: templates of files that the rule must
    not match.
    `made_by`: task types. If only the type of the task that makes a file is known (as
    at its creation), the rule applies to these types, regardless of `needs`.
    `uses`: uses of the observed files (`one_to_one`, `fan_in`, ..., see
    hintgen/hints/uses.py). `variants`: hints for other uses that the engine's graph may
    declare (a reduce of a single file is a pipeline). `gain`: gain for the files of the run
    that it was learned from; None: not simulated.
    """

    id: Text
    template: Template
    regex: Text
    directory: Text  # fixed leading directory of the template; "" is the data root
    producer: Text | None  # task type; null: an input of the run, or several types
    consumers: Types
    pattern: Text
    hints: Hints
    confidence: Annotated[float, Meta(ge=0, le=1)]
    evidence: Evidence
    conditions: Conditions = UNCONDITIONAL
    exclude: Annotated[tuple[Template, ...], Meta(max_length=MAX_EXCLUDE)] = ()
    examples: Annotated[tuple[Text, ...], Meta(max_length=5)] = ()  # observed paths
    # path -> hint name -> value; msgspec writes the default into the schema from 0.23 on
    per_file: Annotated[
        dict[Text, dict[HintKey, HintValue]],
        Meta(max_length=100_000, extra_json_schema={"default": {}}),
    ] = field(default_factory=dict)
    producers: Types = ()  # all producing types, "" for inputs of the run; empty: only inputs
    uses: Annotated[tuple[Use, ...], Meta(max_length=16)] = ()
    variants: Annotated[tuple[Variant, ...], Meta(max_length=16)] = ()
    made_by: Types = ()
    gain: Gain | None = None


@dataclass(frozen=True)
class Refusal:
    """A hint that was considered and rejected."""

    template: Text
    pattern: Text
    reason: Text  # code, e.g. "too_small", "conflict", "capacity"
    text: Text
    files: Count
    bytes: Count


Parameters = Annotated[
    dict[Text, Any],
    Meta(
        description="What the rules were learned with. No value asks for more copies than `nodes`, "
        "unless the next run's number is given; `nodes_given`: it was typed, not derived from the "
        "run.",
        extra_json_schema={
            "properties": {
                "nodes": {"type": "integer", "minimum": 1, "maximum": MAX_NODES},
                "nodes_given": {"type": "boolean"},
            }
        },
    ),
]


@dataclass(frozen=True)
class HintFile:
    """Content of a hint file.

    `peeks`: (producing type, consuming type), "" for inputs of the run, whose readers only read
    headers; in a declared graph they do not count as readers (hintgen/learn/facts.py).
    `makers`: programs that identify a task's type while the task runs, with unique words.
    `plan`: plan for the run of one known graph, in addition to the rules. `directories`: hints
    of directories, regardless of their content. `baseline`, `all`: the simulated run
    without hints, and the gain with all hints; None: not simulated.
    """

    learned_from: Annotated[tuple[dict[Text, Any], ...], Meta(max_length=10_000)]
    parameters: Parameters
    rules: tuple[Rule, ...]
    refused: tuple[Refusal, ...] = ()
    peeks: Annotated[tuple[tuple[Text, Text], ...], Meta(max_length=MAX_TYPES)] = ()
    makers: Annotated[tuple[Maker, ...], Meta(max_length=MAX_TYPES)] = ()
    baseline: Baseline | None = None
    all: Gain | None = None
    plan: Plan | None = None
    directories: Annotated[tuple[FolderHints, ...], Meta(max_length=100_000)] = ()
    schema: Literal["tracehint.hints/1"] = HINTS_SCHEMA

    @property
    def maker_types(self) -> tuple[str, ...]:
        """Task types that can be identified while a task runs, sorted."""
        return tuple(sorted({maker.type for maker in self.makers}))

    @property
    def nodes(self) -> int | None:
        """Number of nodes that the rules were learned for, the maximum number of copies."""
        return self.parameters.get("nodes")

    @property
    def given_nodes(self) -> int | None:
        """`nodes` if the user gave the number; None if it was derived from the run."""
        return self.nodes if self.parameters.get("nodes_given") else None
