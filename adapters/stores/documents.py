"""Stores that take one document, not settings per file: a policy, rules of paths, a list of files.

What a hint means there is a table of rows as for attributes; `render` puts the words of all targets
into the document. Names are held to letters that no such language reads as its own.
"""

from __future__ import annotations

import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracehint.adapters.plan import TagPlan, Target
from tracehint.adapters.stores.base import Document, Gap, merge_gaps
from tracehint.adapters.stores.grammar import check_word
from tracehint.adapters.stores.script import nothing_to_say
from tracehint.adapters.stores.table import Table
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.version import __version__

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
    """A store of that kind; `kinds` is what each word may look like."""

    kinds: Mapping[str, str]

    @abstractmethod
    def render(
        self, said: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """(the document without its head, number of its records); adds what it cannot say."""

    def head(self) -> list[str]:
        """The first lines, as a comment of the document's language gets them."""
        warning = self.about.warning(self.title)
        lines = [f"tracehint {__version__}: storage hints for {self.title}", warning]
        return [re.sub(r"[^A-Za-z0-9 ,.:()_-]", " ", line) for line in lines if line]

    def document(self, hints: HintFile, plan: TagPlan) -> Document:
        """The document for all targets; raises UsageError where it has nothing to say."""
        gaps: list[Gap] = []
        said = []
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
                said.append(CheckedTarget(path, target, words))
        text, records = self.render(said, hints, gaps) if said else ("", 0)
        counted = merge_gaps(gaps)
        if not records:
            raise nothing_to_say(plan, self, counted, 0)
        return Document(text.encode("ascii"), records, counted)

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Nothing is set file by file."""
        raise UsageError(
            f"{self.title} takes a document, not settings of files",
            f"Write it with tracehint emit --store {self.name} -o FILE.",
        )

    def read(self, fd: int, key: str) -> bytes | None:
        """Nothing can be read file by file."""
        raise OSError(errno.ENOTSUP, f"{self.title} takes a document")

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Nothing is set file by file."""
        raise OSError(errno.ENOTSUP, f"{self.title} takes a document")

    def remove(self, fd: int, key: str) -> None:
        """Nothing is set file by file."""
        raise OSError(errno.ENOTSUP, f"{self.title} takes a document")
