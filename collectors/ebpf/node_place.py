"""Where the recorder of a user, a node and a directory of bundles is met."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tracehint.collectors.ebpf.blind import LOADER
from tracehint.collectors.ebpf.missed import missed_file
from tracehint.collectors.hostinfo import host_name
from tracehint.collectors.session import BUNDLE_DIR
from tracehint.errors import CollectorError

JOIN = LOADER.parent / "tracehint-join"
NODE_DIR = "TRACEHINT_NODE_DIR"  # in place of /tmp/tracehint-UID


@dataclass(frozen=True)
class Place:
    """Where the recorder of this user, host and bundle directory is found."""

    socket: Path
    bundles: Path
    host: str

    @property
    def lock(self) -> Path:
        """The file that connecting tasks lock, shared."""
        return Path(f"{self.socket}.lock")

    @property
    def log(self) -> Path:
        """What a recorder in the background has to say."""
        return Path(f"{self.socket}.log")

    @property
    def missed(self) -> Path:
        """One line for each task that could not be followed."""
        return missed_file(self.bundles, self.host)

    def prefix(self) -> list[str]:
        """What makes a command join, put before it."""
        return [str(JOIN), str(self.socket), str(self.missed), "--"]


def node_place(host: str = "") -> Place:
    """The place for this environment; its directory is made. Raises CollectorError."""
    bundles = Path(os.path.abspath(os.environ.get(BUNDLE_DIR) or "."))  # noqa: PTH100
    name = host_name(host)
    # a name space of its own has numbers of its own: its tasks cannot be told to an outer recorder
    space = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    key = hashlib.sha256(
        f"{os.fspath(bundles)}\0{name}\0{space}".encode("utf-8", "surrogateescape")
    )
    try:
        bundles.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CollectorError(
            f"{bundles}: cannot be made: {error.strerror}", f"Set {BUNDLE_DIR} to another place."
        ) from None
    return Place(_private_folder() / key.hexdigest()[:16], bundles, name)


def _private_folder() -> Path:
    """A directory of this user that nobody else can enter. Raises CollectorError."""
    path = Path(os.environ.get(NODE_DIR) or f"/tmp/tracehint-{os.geteuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise CollectorError(
            f"{path}: cannot be made: {error.strerror}", f"Set {NODE_DIR} to another place."
        ) from None
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o77
    if not safe:
        raise CollectorError(
            f"{path}: is not a directory that only this user can enter",
            f"Remove it, or set {NODE_DIR} to a directory of yours with mode 700.",
        )
    return path
