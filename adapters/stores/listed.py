"""Stores whose document is JSON, a record per task or file: Hercules/IMSS, TaskVine; and a list of
files: JuiceFS. None of them was run here.

Hercules reads its configuration when a process starts, so a hint belongs to a task, not to a file.
TaskVine is told of every file by the program that makes its tasks. JuiceFS can load files into
caches before a run, and nothing else: its write-back would show a file to other nodes only after
the upload.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tracehint.adapters.stores.about import About
from tracehint.adapters.stores.base import Acts, Gap
from tracehint.adapters.stores.documents import CheckedTarget, DocumentStore
from tracehint.adapters.stores.fields import Field
from tracehint.adapters.stores.grammar import Grid
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.table import fully, nearly, no
from tracehint.hintgen.hints.model import HintFile

NEW: tuple[Acts, ...] = ("creation",)
_WRITE_BACK = (
    "write-back is refused: a reader on another node gets nothing until the upload is done"
)


@dataclass(frozen=True, kw_only=True)
class Hercules(DocumentStore):
    """Hercules: a configuration per type of task that writes."""

    def render(
        self, said: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Task type -> keys of its hercules.conf; a task whose files differ gets none."""
        makers = {rule.id: rule.producer or "" for rule in hints.rules}
        wanted: dict[str, dict[str, str]] = {}
        conflicts: set[str] = set()
        for one in said:
            task = makers.get(one.target.rule, "")
            if not task:
                reason = "no task of the run writes it, and a configuration belongs to a task"
                gaps.append(Gap(hint=one.target.pattern, level="none", reason=reason))
            elif wanted.setdefault(task, dict(one.words)) != dict(one.words):
                conflicts.add(task)
        for task in sorted(conflicts):
            reason = (
                f"the files of the task {task[:60]} differ, and a process has one configuration"
            )
            gaps.append(Gap(hint="DP", level="none", reason=reason))
        tasks = {task: words for task, words in wanted.items() if task not in conflicts}
        return _json(self, "tracehint.hercules/1", tasks=tasks), len(tasks)


@dataclass(frozen=True, kw_only=True)
class TaskVine(DocumentStore):
    """TaskVine: how the manager's program declares each file."""

    def render(
        self, said: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """A record per file: the call, and its arguments by name."""
        files = [{"path": one.path, **one.words} for one in said if one.target.kind == "file"]
        return _json(self, "tracehint.taskvine/1", files=files), len(files)


@dataclass(frozen=True, kw_only=True)
class JuiceFs(DocumentStore):
    """JuiceFS: the files that many tasks will read, for `juicefs warmup --file LIST`."""

    def render(
        self, said: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """A path per line, below the mount; a list has no comments."""
        lines = [f"{self.places.base}/{one.path}" for one in said]
        return "".join(f"{line}\n" for line in lines), len(lines)


def _json(store: DocumentStore, schema: str, **parts: object) -> str:
    first, warning = store.head()
    return (
        json.dumps({"schema": schema, "made": first, "warning": warning, **parts}, indent=1) + "\n"
    )


def hercules(places: Places) -> Hercules:
    """Policies RR and LOCAL as src/policies.c parses them; BLOCK_SIZE in KiB."""
    return Hercules(
        name="hercules", title="Hercules / IMSS (hercules.conf per task)", places=places,
        targets=("file",), about=_HERCULES,
        kinds={"POLICY": "RR|LOCAL", "BLOCK_SIZE": "count", "REPL_FACTOR": "1|2|3"},
        fields={
            "kib": Field("block", Grid(divide=1024)),
            "region_kib": Field("region", Grid(divide=1024)),
            "copies": Field("value", Grid(least=1, most=3)),
        },
        rows={
            "DP=local": nearly(
                "for all that the task writes; servers must run on the compute nodes", NEW,
                ("POLICY", "LOCAL"),
            ),
            "DP=collocation": no("no policy puts files of a group together"),
            "DP=scatter": nearly(
                "one block per region, round robin, for all that the task writes", NEW,
                ("POLICY", "RR"), ("BLOCK_SIZE", "{region_kib}"), needs=("BlockSize",),
            ),
            "DP=distribute": no("every file starts at a server that its name decides anyway"),
            "Replication": nearly(
                "at most 3 copies, for all that the task writes", NEW, ("REPL_FACTOR", "{copies}")
            ),
            "BlockSize": nearly(
                "in KiB, for all that the task writes", NEW, ("BLOCK_SIZE", "{kib}"),
                yields_to="DP=scatter",
            ),
        },
    )  # fmt: skip  # a table


_HERCULES = About(
    who="whoever starts the task: HERCULES_CONF=FILE LD_PRELOAD=libhercules_posix.so CMD",
    read_back="get_dataloc of its API",
    undo="another configuration for the next process",
    cost="nothing beyond reading the file",
    source="src/policies.c and tools/imss_posix.c of Hercules (July 2024)",
)


def taskvine(places: Places) -> TaskVine:
    """Declarations as in ndcctools.taskvine."""
    return TaskVine(
        name="taskvine", title="TaskVine (declarations per file)", places=places,
        targets=("file",), about=_TASKVINE,
        kinds={
            "declare": "declare_temp|declare_file", "cache": "workflow", "peer_transfer": "true",
            "replicas": "count",
        },
        fields={"copies": Field("value", Grid(least=1, most=100))},
        rows={
            "DP=local": fully(
                "a temporary: it stays on the worker that wrote it, its reader goes there", NEW,
                ("declare", "declare_temp"),
            ),
            "DP=collocation": no("the manager places tasks by the bytes that a worker has"),
            "Replication": nearly(
                "kept on workers and passed on between them; the count is one of the manager, for "
                "temporaries", NEW,
                ("cache", "workflow"), ("peer_transfer", "true"), ("replicas", "{copies}"),
            ),
            "BlockSize": no("files are moved whole"),
        },
    )  # fmt: skip  # a table


_TASKVINE = About(
    who="the author of the manager's program",
    read_back="the manager's transaction log",
    undo="declare_file",
    cost="nothing",
    source="the TaskVine manual; its calls were tried by hand",
)


def juicefs(places: Places) -> JuiceFs:
    """The warm-up list."""
    return JuiceFs(
        name="juicefs", title="JuiceFS (warm-up list)", places=places, targets=("file",),
        kinds={"warm": "1"}, about=_JUICEFS,
        rows={
            "DP=local": no(_WRITE_BACK),
            "DP=collocation": no("blocks are objects of one bucket"),
            "Replication": nearly(
                "inputs of a run, loaded into the cache of each node that runs juicefs warmup "
                "--file LIST", ("any",), ("warm", "1"),
            ),
            "BlockSize": no("a setting of the volume"),
            "Lifetime": no(_WRITE_BACK),
        },
    )  # fmt: skip  # a table


_JUICEFS = About(
    who="any user, on each node",
    read_back="`juicefs info PATH` has no word of it",
    undo="none needed: a cache",
    cost="one read of each file on each node",
    source="its command reference; mount options were tried by hand",
    tools=("juicefs",),
)
