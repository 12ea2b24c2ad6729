"""SeaweedFS: rules of path prefixes for `weed shell`. Not run here; its syntax was tried by hand.

A rule that names an unreachable data node blocks all writers below its prefix. So every node is
checked (a TCP connection) before a document is written; an unreachable one is an error.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import About, Acts, Gap
from tracehint.adapters.stores.document_stores import CheckedTarget, DocumentStore
from tracehint.adapters.stores.grammar import Field
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.table import express_fully, express_nearly, no
from tracehint.errors import InputError, UsageError

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile

TIMEOUT_S = 2.0
MAX_COPIES = 10  # on servers of one rack: the last digit of the replication code
_RULE = re.compile(
    r"fs\.configure -locationPrefix=(/[A-Za-z0-9_.+=~-]+)+/?( -dataNode=[A-Za-z0-9.-]+:[0-9]{1,5})?"
    r"( -replication=00[0-9])? -apply|# [A-Za-z0-9 ,.:()_-]*"
)
NEW: tuple[Acts, ...] = ("directory", "creation")

ABOUT = About(
    who="users who may run `weed shell`",
    read_back="`fs.configure` without -apply prints the rules",
    undo="the same rule with -delete -apply",
    cost="one line a file or directory; every rule is looked at when a file is made",
    source="command_fs_configure.go of SeaweedFS 4",
    tools=("weed",),
)
ROWS = {
    "DP=local": no("a rule names a node, not the writer's own"),
    "DP=collocation": express_fully(
        "the data node that the --map file names (groups, port)", NEW, ("node", "{group}")
    ),
    "DP=scatter": no("chunks go to volumes in the order they come"),
    "DP=distribute": no("volumes are spread over the nodes anyway"),
    "Replication": express_nearly(
        "at most 10 copies, on servers of one rack; for what is written later",
        NEW,
        ("copies", "{copies}"),
    ),
    "BlockSize": no("a setting of the mount or of one request"),
}


def is_listening(host: str, port: int) -> bool:
    """Whether a server listens on the port."""
    try:
        with socket.create_connection((host, port), TIMEOUT_S):
            return True
    except OSError:
        return False


@dataclass(frozen=True, kw_only=True)
class SeaweedRules(DocumentStore):
    """The SeaweedFS adapter; `alive`: whether a data node is reachable."""

    alive: Callable[[str, int], bool] = is_listening

    def render(
        self, checked: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Render a rule per target; the longest matching prefix applies to a file."""
        for node in sorted({one.words["node"] for one in checked if "node" in one.words}):
            if not self.alive(node, self.places.port):
                raise UsageError(
                    f"the data node {node}:{self.places.port} does not answer: a rule that names "
                    "it would block every writer there",
                    "Start it, or leave it out of the --map file.",
                )
        lines = [f"# {line}" for line in self.head()]
        lines += [self._line(one) for one in checked]
        return check_rules("\n".join([*lines, ""])), len(checked)

    def _line(self, one: CheckedTarget) -> str:
        folder = "/" if one.target.kind == "directory" and one.path else ""
        words = [f"fs.configure -locationPrefix={self.places.base}/{one.path}{folder}"]
        if "node" in one.words:
            words.append(f"-dataNode={one.words['node']}:{self.places.port}")
        if "copies" in one.words:
            words.append(f"-replication=00{int(one.words['copies']) - 1}")
        return " ".join([*words, "-apply"])


def check_rules(text: str) -> str:
    """Return `text` if every line is a rule of the form above; raises InputError otherwise."""
    for line in text.splitlines():
        if not _RULE.fullmatch(line):
            raise InputError(
                f"{line[:80]!r} is not a rule", 'Give a --map file with base = "/path".'
            )
    return text


def seaweedfs(places: Places) -> SeaweedRules:
    """Return the SeaweedFS store of a site."""
    return SeaweedRules(
        name="seaweedfs",
        title="SeaweedFS (rules of path prefixes)",
        about=ABOUT,
        rows=ROWS,
        fields={"copies": Field(of="value", least=1, most=MAX_COPIES)},
        places=places,
        kinds={"node": "name", "copies": "count"},
    )
