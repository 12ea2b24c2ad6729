"""Hint rules as typed records and as JSON (schemas/hints.schema.json)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracehint.hintgen.hints.folders import FolderHints
from tracehint.hintgen.hints.plan import Plan

HINTS_SCHEMA = "tracehint.hints/1"
INPUT = ""  # among a rule's producers: inputs of the workflow, which no task writes


@dataclass(frozen=True)
class Hint:
    """One neutral hint, e.g. DP=local. `value` is what the observed run would get.

    `formula` says how the value follows from the scale of another run, e.g.
    {"fn": "replicas", "per": 3}; empty: constant (hintgen/hints/formulas.py lists them).
    `when`: create (before the first byte), before_read, staging, any.
    `level`: placement (an adapter should set it) or advisory (nice to know).
    """

    name: str
    value: str
    when: str
    formula: dict[str, Any] = field(default_factory=dict)
    level: str = "placement"


@dataclass(frozen=True)
class Maker:
    """A program by which a task's type is known while the task runs.

    `word`: of a process (analyzer/tasks/process_word.py), as text (hintgen/hints/pathtext.py); it
    is that of the outermost process of the task that has one in this list. `sure`: in the run
    seen, all files that tasks of this type made were made by such processes.
    """

    word: str
    type: str
    sure: bool


@dataclass(frozen=True)
class Variant:
    """What a rule says for files that the engine's graph declares to be used otherwise.

    `learned`: seen in the run (else it follows from the definition of the pattern).
    """

    use: str
    pattern: str
    hints: tuple[Hint, ...]
    learned: bool


@dataclass(frozen=True)
class Rule:
    """A rule about files that may not exist yet.

    `template` (`proj/p_tile_{n}.fits`) decides; `regex` is what it compiles to
    (full match, on the path below the data root, bytes read as Latin-1), for
    targets that want one. `exclude` are templates of files that the rule must
    not catch. `conditions`:
      needs = "use": the path alone does not tell; fires only where the engine's
          graph declares who reads the file; "types": only where the declared
          producing and consuming types fit as well.
      min_size_bytes: a file that is there, and smaller, is left alone.
      beside: templates of other files of the run, with the text of this one's placeholder;
          fires only where all names of the run are given and these are among them.
      per_pair: most files that two tasks share, where the graph names the tasks; where there are
          more, the rule is silent.
    `made_by`: task types. Where nothing but the type of the task that makes a file is known (as
    at its creation), the rule fires for these, whatever it needs otherwise.
    `uses`: how the observed files were used (`one_to_one`, `fan_in`, ..., see
    hintgen/hints/uses.py). `variants`: what holds instead where the engine's graph
    declares another use (a reduce of a single file is a pipeline).
    """

    id: str
    template: str
    regex: str
    directory: str  # fixed leading directory of the template; "" is the data root
    producer: str | None  # task type; null: an input of the run, or several types
    consumers: tuple[str, ...]  # task types
    pattern: str
    hints: tuple[Hint, ...]
    confidence: float
    evidence: dict[str, Any]  # files, bytes, saves_bytes, fan_in, ..., numbers only
    conditions: dict[str, Any] = field(default_factory=dict)  # see above
    exclude: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()  # up to 5 observed paths
    per_file: dict[str, dict[str, str]] = field(default_factory=dict)  # path -> hint name -> value
    producers: tuple[str, ...] = ()  # all producing types, "" for inputs of the run;
    # empty: only inputs
    uses: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    made_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A hint that was considered and not given."""

    template: str
    pattern: str
    reason: str  # code, e.g. "too_small", "conflict", "capacity"
    text: str
    files: int
    bytes: int


@dataclass(frozen=True)
class HintFile:
    """Everything in a hint file.

    `peeks`: (producing type, consuming type), "" for inputs of the run, where the readers only
    looked into the files; in a declared graph they are no readers (hintgen/learn/peeks.py).
    `makers`: how a task's type is known while the task runs; each word is there once.
    `plan`: for the run of one known graph, beside the rules for all others. `directories`: what
    a directory is told, whatever lies in it.
    """

    learned_from: tuple[dict[str, Any], ...]
    parameters: dict[str, Any]
    rules: tuple[Rule, ...]
    refused: tuple[Refusal, ...] = ()
    peeks: tuple[tuple[str, str], ...] = ()
    plan: Plan | None = None
    directories: tuple[FolderHints, ...] = ()
    makers: tuple[Maker, ...] = ()

    @property
    def maker_types(self) -> tuple[str, ...]:
        """The types that are known while a task runs, sorted."""
        return tuple(sorted({maker.type for maker in self.makers}))

    @property
    def nodes(self) -> int | None:
        """Nodes that the rules were learned for, where somebody said how many there are."""
        return self.parameters["nodes"] if self.parameters.get("nodes_given") else None
