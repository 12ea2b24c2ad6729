"""The document of `analyze --format json`; docs/reference/analysis.schema.json is derived."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from tracehint.analyzer import catalogue
from tracehint.schemas.fields import Amount, Count, Positive, Share

PatternName = Annotated[str, Meta(extra_json_schema={"enum": [*catalogue.NAMES]})]
GroupName = Annotated[str, Meta(extra_json_schema={"enum": [*catalogue.GROUPED]})]
Placement = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9=_.-]{0,60}$",
        description="default, local, collocation, scatter, regions, balanced or replicas=<n>.",
    ),
]
Base64 = Annotated[
    str | None,
    Meta(
        description="The name's bytes when it is not UTF-8, else null.",
        extra_json_schema={"contentEncoding": "base64"},
    ),
]
Ranges = Annotated[
    list[tuple[Count, Count]],
    Meta(
        description="Half-open byte ranges [start, end), sorted, disjoint; left out with "
        "--no-ranges."
    ),
]
When = Annotated[
    float | None, Meta(description="Seconds from the start of the run: first or last access.")
]


class Completeness(TypedDict):
    """`score`: share of the events that are known, times 0.9 where how much is missing besides is
    unknown, times what the collector is blind to. `losses`: how many, by kind."""

    score: Share
    blind_to: list[str]
    notes: list[str]
    losses: NotRequired[dict[str, Count]]


class TaskMaker(TypedDict):
    """A program by which a task's type is known while it runs; see the hint file's."""

    word: str
    type: str
    sure: bool


class RequestedResources(TypedDict, total=False):
    """The most that a task of a type requests, and the most memory that one used; absent where
    neither the engine nor Slurm states it."""

    cores: int
    memory_bytes: int
    peak_bytes: int


class RunFacts(TypedDict):
    """The run as a whole."""

    command: list[str]
    hosts: list[str]
    sites: list[str]
    hosts_by_site: NotRequired[
        Annotated[dict[str, Positive], Meta(description="Empty: fewer than two sites.")]
    ]
    between_sites_bytes: NotRequired[
        Annotated[
            Count,
            Meta(
                description="Bytes that tasks read from tasks of another site; absent: fewer than "
                "two sites."
            ),
        ]
    ]
    collector: str
    started: Annotated[str, Meta(description="ISO 8601, UTC")]
    duration_s: float
    nodes: Count
    nodes_from: NotRequired[
        Annotated[
            Literal["given", "hosts", "tasks"],
            Meta(description="--nodes, the hosts of the run, or its most tasks at one time."),
        ]
    ]
    data_roots: list[str]
    exit_status: NotRequired[
        Annotated[
            int | None, Meta(description="Of the command, as a shell gives it; null: not known.")
        ]
    ]
    complete: NotRequired[
        Annotated[bool, Meta(description="Whether the recorder reached its end.")]
    ]
    troubles: NotRequired[
        Annotated[
            list[str],
            Meta(description="The run failed or was interrupted, the recorder was stopped."),
        ]
    ]
    lost_events: Count
    completeness: Completeness
    parameters: NotRequired[
        Annotated[
            dict[str, Any],
            Meta(description="Thresholds and default placement that the labels were made with."),
        ]
    ]
    requested: NotRequired[
        Annotated[dict[str, RequestedResources], Meta(description="By type of task.")]
    ]
    makers: NotRequired[list[TaskMaker]]


class TaskRow(TypedDict):
    """A task. `group`, `rank`: of MPI ranks only; those of one program have one group. `cpu_s`: of
    all its processes and threads; `io_wait_s`: it waited for files; absent: unknown."""

    id: str
    name: str
    type: str
    command: str
    host: str
    site: str
    start_s: float
    end_s: float | None
    exit_status: int | None
    attempt: Positive
    processes: Count
    engine: bool
    source: Literal["observed", "declared", "both"]
    group: NotRequired[str]
    rank: NotRequired[Count]
    cpu_s: NotRequired[Amount]
    io_wait_s: NotRequired[Amount]


class PlacementChoice(TypedDict):
    """Network bytes less than by the default placement; negative when only waiting is saved.
    `saves_wait_bytes`: the same for the busiest link while readers wait."""

    placement: Placement
    saves_bytes: int
    runner_up: Placement
    runner_up_saves_bytes: int
    saves_wait_bytes: NotRequired[int]


class PatternLabel(TypedDict):
    """`evidence`: the numbers that decided: in full at a file, the deciding ones only at its edges.
    docs/patterns.md names them."""

    pattern: PatternName
    primary: bool
    confidence: Share
    group: str | None
    evidence: dict[str, Any]
    choice: PlacementChoice


class ProducerRow(TypedDict):
    """A task that wrote the file. `how`: `carried`: written in an earlier version and not
    overwritten. `owned_bytes`: whose last writer it is at the end of the version."""

    task: str
    bytes: Count
    unique_bytes: Count
    ranges: NotRequired[Ranges]
    how: list[str]
    superseded: bool
    first_s: NotRequired[When]
    last_s: NotRequired[When]
    owned_bytes: NotRequired[Count]


class ConsumerRow(TypedDict):
    """A task that read the file."""

    task: str
    bytes: Count
    unique_bytes: Count
    cover: Share | None
    peek: bool
    ranges: NotRequired[Ranges]
    how: list[str]
    first_s: NotRequired[When]
    last_s: NotRequired[When]


class FileRow(TypedDict):
    """A version of a file. `deleted`: gone at the end of the run. `lineage`: versions of one file
    share it. `exact_share`: of the accessed bytes that is known exactly, not as an upper bound."""

    id: str
    path: str
    path_bytes: Base64
    version: Count
    other_paths: list[str]
    role: Literal["input", "intermediate", "output", "scratch", "software"]
    size_bytes: int | None
    producers: list[ProducerRow]
    consumers: list[ConsumerRow]
    patterns: list[PatternLabel]
    other_path_bytes: NotRequired[list[Base64]]
    deleted: NotRequired[bool]
    lineage: NotRequired[int]
    exact_share: NotRequired[Share | None]


class EdgeRow(TypedDict):
    """Bytes from a task to another one through a file."""

    producer: str
    file: str
    consumer: str
    bytes: Count
    via: Literal["data", "engine_copy", "declared"]
    order: Literal["certain", "uncertain"]
    patterns: list[PatternLabel]


class GroupRow(TypedDict):
    """Files that one task brings together or gives out."""

    id: str
    pattern: GroupName
    task: str
    files: list[str]
    bytes: Count
    primary: bool
    evidence: dict[str, Any]


class AnalysisDocument(TypedDict):
    """Output of `tracehint analyze BUNDLE --format json`. Seconds count from the start
    of the run. Fields are only ever added."""

    schema: Literal["tracehint.analysis/1"]
    run: RunFacts
    tasks: list[TaskRow]
    files: list[FileRow]
    edges: list[EdgeRow]
    groups: list[GroupRow]
