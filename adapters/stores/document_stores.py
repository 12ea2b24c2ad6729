"""Stores with one document instead of settings per file: a policy, path rules, a list of files.

A table of rows translates hints, as for attributes; `render` writes the words of all targets to the
document. Names are limited to characters without a meaning in these languages.
"""

from __future__ import annotations

import errno
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import About, Acts, Document, Gap, merge_gaps
from tracehint.adapters.stores.grammar import Field, check_word
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.script import nothing_to_say
from tracehint.adapters.stores.table import Table, express_fully, express_nearly, no
from tracehint.errors import UsageError
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.adapters.plan import TagPlan, Target
    from tracehint.hintgen.hints.model import HintFile

PLAIN = re.compile(r"[A-Za-z0-9_.+=~-]+(/[A-Za-z0-9_.+=~-]+)*")
ODD_NAME = "its name has other letters than A-Z a-z 0-9 . _ + = ~ -"


@dataclass(frozen=True)
class CheckedTarget:
    """One target and its words, all checked. `path`: "" is the root."""

    path: str
    target: Target
    words: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class DocumentStore(Table, ABC):
    """Base of stores with a document; `kinds`: the grammar of each word."""

    kinds: Mapping[str, str]

    @abstractmethod
    def render(
        self, checked: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Return (document, number of its records); appends what it cannot express to `gaps`."""

    def head(self) -> list[str]:
        """Return the first lines, with characters that are safe in any comment."""
        warning = self.about.warning(self.title)
        lines = [f"tracehint {__version__}: storage hints for {self.title}", warning]
        return [re.sub(r"[^A-Za-z0-9 ,.:()_-]", " ", line) for line in lines if line]

    def document(self, hints: HintFile, plan: TagPlan) -> Document:
        """Return the document for all targets; raises UsageError if it would be empty."""
        gaps: list[Gap] = []
        checked = []
        for target in plan.targets:
            settings, missing = self.translate(target.hints, target.kind)
            gaps += missing
            words = {one.key: one.value.decode() for one in settings}
            for name, value in words.items():
                check_word(self.kinds[name], name, value)
            path = target.path.decode("utf-8", "replace")
            if words and path and not PLAIN.fullmatch(path):
                gaps += [Gap(hint=one.hint, level="none", reason=ODD_NAME) for one in settings]
            elif words:
                checked.append(CheckedTarget(path, target, words))
        text, records = self.render(checked, hints, gaps) if checked else ("", 0)
        counted = merge_gaps(gaps)
        if not records:
            raise nothing_to_say(plan, self, counted, 0)
        return Document(text.encode("ascii"), records, counted)

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Raise UsageError: nothing is set per file."""
        raise UsageError(
            f"{self.title} takes a document, not settings of files",
            f"Write it with tracehint emit --store {self.name} -o FILE.",
        )

    def read(self, fd: int, key: str) -> bytes | None:
        """Raise OSError: nothing can be read per file."""
        raise OSError(errno.ENOTSUP, f"{self.title} takes a document")

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Raise OSError: nothing is set per file."""
        raise OSError(errno.ENOTSUP, f"{self.title} takes a document")

    def remove(self, fd: int, key: str) -> None:
        """Raise OSError: nothing is set per file."""
        raise OSError(errno.ENOTSUP, f"{self.title} takes a document")


NEW: tuple[Acts, ...] = ("creation",)
_WRITE_BACK = (
    "write-back is refused: a reader on another node gets nothing until the upload is done"
)


@dataclass(frozen=True, kw_only=True)
class Hercules(DocumentStore):
    """Hercules: one configuration per type of writing task."""

    def render(
        self, checked: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Render the keys of hercules.conf per task type; if its files differ, none."""
        makers = {rule.id: rule.producer or "" for rule in hints.rules}
        wanted: dict[str, dict[str, str]] = {}
        conflicts: set[str] = set()
        for one in checked:
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
        self, checked: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Render a record per file: the call, and its arguments by name."""
        files = [{"path": one.path, **one.words} for one in checked if one.target.kind == "file"]
        return _json(self, "tracehint.taskvine/1", files=files), len(files)


@dataclass(frozen=True, kw_only=True)
class JuiceFs(DocumentStore):
    """JuiceFS: the files that many tasks will read, for `juicefs warmup --file LIST`."""

    def render(
        self, checked: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Render a path per line, below the mount; a list has no comments."""
        lines = [f"{self.places.base}/{one.path}" for one in checked]
        return "".join(f"{line}\n" for line in lines), len(lines)


def _json(store: DocumentStore, schema: str, **parts: object) -> str:
    first, warning = store.head()
    return (
        json.dumps({"schema": schema, "made": first, "warning": warning, **parts}, indent=1) + "\n"
    )


def hercules(places: Places) -> Hercules:
    """Return the store; policies RR and LOCAL as in src/policies.c, BLOCK_SIZE in KiB."""
    return Hercules(
        name="hercules",
        title="Hercules / IMSS (hercules.conf per task)",
        places=places,
        targets=("file",),
        about=_HERCULES,
        kinds={"POLICY": "RR|LOCAL", "BLOCK_SIZE": "count", "REPL_FACTOR": "1|2|3"},
        fields={
            "kib": Field(of="block", divide=1024),
            "region_kib": Field(of="region", divide=1024),
            "copies": Field(of="value", least=1, most=3),
        },
        rows={
            "DP=local": express_nearly(
                "for all that the task writes; servers must run on the compute nodes",
                NEW,
                ("POLICY", "LOCAL"),
            ),
            "DP=collocation": no("no policy puts files of a group together"),
            "DP=scatter": express_nearly(
                "one block per region, round robin, for all that the task writes",
                NEW,
                ("POLICY", "RR"),
                ("BLOCK_SIZE", "{region_kib}"),
                needs=("BlockSize",),
            ),
            "DP=distribute": no("every file starts at a server that its name decides anyway"),
            "Replication": express_nearly(
                "at most 3 copies, for all that the task writes", NEW, ("REPL_FACTOR", "{copies}")
            ),
            "BlockSize": express_nearly(
                "in KiB, for all that the task writes",
                NEW,
                ("BLOCK_SIZE", "{kib}"),
                yields_to="DP=scatter",
            ),
        },
    )


_HERCULES = About(
    who="the user who starts the task: HERCULES_CONF=FILE LD_PRELOAD=libhercules_posix.so CMD",
    read_back="get_dataloc of its API",
    undo="another configuration for the next process",
    cost="nothing beyond reading the file",
    source="src/policies.c and tools/imss_posix.c of Hercules (July 2024)",
)


def taskvine(places: Places) -> TaskVine:
    """Return the store, with declarations as in ndcctools.taskvine."""
    return TaskVine(
        name="taskvine",
        title="TaskVine (declarations per file)",
        places=places,
        targets=("file",),
        about=_TASKVINE,
        kinds={
            "declare": "declare_temp|declare_file",
            "cache": "workflow",
            "peer_transfer": "true",
            "replicas": "count",
        },
        fields={"copies": Field(of="value", least=1, most=100)},
        rows={
            "DP=local": express_fully(
                "a temporary: it stays on the worker that wrote it, its reader goes there",
                NEW,
                ("declare", "declare_temp"),
            ),
            "DP=collocation": no("the manager places tasks by the bytes that a worker has"),
            "Replication": express_nearly(
                "kept on workers and passed on between them; the count is one of the manager, for "
                "temporaries",
                NEW,
                ("cache", "workflow"),
                ("peer_transfer", "true"),
                ("replicas", "{copies}"),
            ),
            "BlockSize": no("files are moved whole"),
        },
    )


_TASKVINE = About(
    who="the author of the manager's program",
    read_back="the manager's transaction log",
    undo="declare_file",
    cost="nothing",
    source="the TaskVine manual; its calls were tried by hand",
)


def juicefs(places: Places) -> JuiceFs:
    """Return the store of warm-up lists."""
    return JuiceFs(
        name="juicefs",
        title="JuiceFS (warm-up list)",
        places=places,
        targets=("file",),
        kinds={"warm": "1"},
        about=_JUICEFS,
        rows={
            "DP=local": no(_WRITE_BACK),
            "DP=collocation": no("blocks are objects of one bucket"),
            "Replication": express_nearly(
                "inputs of a run, loaded into the cache of each node that runs juicefs warmup "
                "--file LIST",
                ("any",),
                ("warm", "1"),
            ),
            "BlockSize": no("a setting of the volume"),
            "Lifetime": no(_WRITE_BACK),
        },
    )


_JUICEFS = About(
    who="any user, on each node",
    read_back="`juicefs info PATH` has no word of it",
    undo="none needed: a cache",
    cost="one read of each file on each node",
    source="its command reference; mount options were tried by hand",
    tools=("juicefs",),
)
