"""The probe as a whole: agents on the nodes, a directory on the store, and what they saw."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tracehint.adapters.place.hosts import Host
from tracehint.adapters.probe.nodes import agents
from tracehint.adapters.probe.seen import Seen
from tracehint.adapters.probe.steps import measure
from tracehint.errors import InputError

MAX_NODES, MAX_SECONDS = 5, 180.0


# Stores whose clients have a memory of their own: reads come from it whatever a program advises
# the kernel, and what was written stays there after the file is closed.
KEEPING = frozenset({"cephfs"})
# What works for a store on its machines, beside the kernel.
PROGRAMS = {
    "cephfs": ("ceph-osd", "ceph-mds", "ceph-mon", "ceph-fuse"),
    "moosefs": ("mfschunkserver", "mfsmaster", "mfsmount"),
}


def probe(
    directory: Path, hosts: Sequence[Host], *, seconds: float, size: int, store: str | None = None
) -> Seen:
    """Measure with at most MAX_NODES of the hosts for at most MAX_SECONDS, in a directory of its
    own on the store that is removed again. Raises InputError."""
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", "Name a directory on the store.")
    try:
        work = Path(tempfile.mkdtemp(prefix=".tracehint-calibrate-", dir=directory.resolve()))
    except OSError as error:
        raise InputError(
            f"cannot write in {directory}: {error.strerror}", "Name one that you may write in."
        ) from error
    try:
        programs = PROGRAMS.get(store or "", ())
        with agents(hosts[:MAX_NODES], work, min(seconds, MAX_SECONDS), programs) as nodes:
            return measure(nodes, size, keeps=store in KEEPING)
    finally:
        shutil.rmtree(work, ignore_errors=True)
