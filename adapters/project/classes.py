"""Names of MooseFS' storage classes that keep files on one node: the map that hints need.

An administrator makes a class for each node, called after it (`node_a1`, `only-a1`, ...): those are
classes of one copy and one label whose names differ in the node's name alone.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tracehint.adapters.stores.places import NAME

_TOOL = "mfsscadmin"
_TIMEOUT_S = 10
# a class of one copy with one label of its own: NAME : 1 ; ... create_labels: [A] ; ...
_ONE = re.compile(r"^(\S+) : 1 ;.*\bcreate_labels: \[([^\]*]+)\]", re.MULTILINE)


def map_text(directory: Path, host: str) -> str:
    """The text of a --map file for a directory on MooseFS; empty: its classes tell nothing."""
    try:
        done = subprocess.run(
            [_TOOL, "list", "-l"], cwd=directory, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, errors="replace",
        )  # fmt: skip  # a table
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else of_classes(done.stdout, host.partition(".")[0])


def of_classes(listing: str, host: str) -> str:
    """The map from what `mfsscadmin list -l` prints, for one who is on that host."""
    names = [name for name, _ in _ONE.findall(listing) if NAME.fullmatch(name)]
    for own in sorted((n for n in names if n.endswith(host)), key=len) if host else ():
        before = own.removesuffix(host)
        groups = sorted(name for name in names if before and name.startswith(before))
        if groups:
            head = "# storage classes of single nodes, found by their names: mfsscadmin list -l\n"
            local = json.dumps(f"{before}{{host}}")
            return f"{head}local = {local}\ngroups = {json.dumps(groups)}\n"
    return ""
