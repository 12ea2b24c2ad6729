"""The cluster file of a store on a test bed, written by `tracehint calibrate` on its nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.support.bed import Node
from tests.support.shaped import on_node


class Nodes(Protocol):
    """A bed whose store is mounted on each node."""

    @property
    def nodes(self) -> Sequence[Node]:
        """Its nodes."""
        ...

    @property
    def mount(self) -> Path:
        """The head's mount."""
        ...


def calibrate(bed: Nodes, store: str, hosts: Path, target: Path) -> None:
    """Measure the store and write `target`; `hosts`: path of the host file to write for that."""
    hosts.write_text(
        "".join(
            f'[[host]]\nname = "{node.label}"\nstart = {json.dumps(on_node(bed.mount, node))}\n'
            for node in bed.nodes
        )
    )
    words = ["--hosts", hosts, "--store", store, "--seconds", "150", "-o", target, "--force"]
    subprocess.run([sys.executable, "-m", "tracehint", "calibrate", bed.mount, *words], check=True)
