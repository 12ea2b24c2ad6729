"""CephFS: layouts, as virtual attributes of files and directories. Facts tried with 16.2.15.

A layout acts on an empty file, or through the directory in which a file is created. Pools of nodes
(for local and collocated placement) are made by the admin and named by a --map file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tracehint.adapters.stores.base import Capability, Gap, Kind, Setting, capability_key
from tracehint.adapters.stores.places import Places
from tracehint.errors import UsageError

UNIT = 64 << 10  # stripe units are multiples of it
MAX_OBJECT = 128 << 20  # osd_max_object_size
DEFAULT_OBJECT = 4 << 20
FIELDS = ("stripe_unit", "stripe_count", "object_size")
KEYS = frozenset(
    f"ceph.{kind}.layout{part}" for kind in ("file", "dir") for part in ("", ".pool")
)  # fmt: skip

_POOL = "a pool per node (--map); its directory or an empty file"
CAPABILITIES: dict[str, Capability] = {
    "DP=local": Capability(level="approximate", how=_POOL, acts=("directory", "creation")),
    "DP=collocation": Capability(level="approximate", how=_POOL, acts=("directory", "creation")),
    "DP=scatter": Capability(
        level="approximate", acts=("directory", "creation"),
        how="one object per region; objects lie pseudo-randomly, so two may share a node",
    ),
    "DP=distribute": Capability(level="none", how="objects are spread anyway"),
    "Replication": Capability(
        level="none",
        how="a property of the pool; reads through ceph-fuse do not spread over the copies",
    ),
    "ReplicationSemantics": Capability(level="none", how="writes wait for all copies, always"),
    "BlockSize": Capability(
        level="full", how="rounded up to 64 KiB", acts=("directory", "creation")
    ),
    "CacheSize": Capability(level="none", how="a setting of the mount"),
    "Access": Capability(level="none", how="no such setting"),
    "Lifetime": Capability(level="none", how="no such setting"),
    "LastReader": Capability(level="none", how="no such setting"),
}  # fmt: skip


@dataclass(frozen=True)
class CephFs:
    """The adapter; `places` names the pools of nodes."""

    places: Places
    name: str = "cephfs"
    title: str = "CephFS (layouts)"
    at_creation: bool = True  # data that lie there already are not moved for a hint

    def capabilities(self) -> Mapping[str, Capability]:
        """One entry per row of the vocabulary."""
        return CAPABILITIES

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """At most a striping and a pool."""
        key = f"ceph.{'dir' if kind == 'directory' else 'file'}.layout"
        keys = {capability_key(n, v): (n, v) for n, v in sorted(hints.items())}
        settings: list[Setting] = []
        gaps: list[Gap] = []
        for row, (name, value) in keys.items():
            pool = self._pool(row, value)
            known = CAPABILITIES.get(row)
            striped = row == "BlockSize" or (row == "DP=scatter" and "BlockSize" in hints)
            if pool is not None:
                hint = f"{name}={value}"
                settings.append(Setting(key=f"{key}.pool", value=pool.encode(), hint=hint))
            elif not striped:
                reason = known.how if known else "unknown hint"
                gaps.append(Gap(hint=row, level="none", reason=reason))
            elif known is not None and known.level == "approximate":
                gaps.append(Gap(hint=row, level="approximate", reason=known.how))
        if "BlockSize" in hints:
            layout, said = _layout(hints)
            settings.append(Setting(key=key, value=layout.encode(), hint=said))
        return settings, gaps

    def _pool(self, row: str, value: str) -> str | None:
        if row == "DP=local":
            return self.places.of_host()
        if row == "DP=collocation":
            return self.places.of_group(value.partition("|")[2])
        return None

    def scripted(self) -> CephFs:
        """A script cannot know the node that it will run on: no local placement in it."""
        return replace(self, places=replace(self.places, local=""))

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Layouts are all that is ever set."""
        if key not in KEYS:
            raise UsageError(f"{key[:80]!r} is no layout of CephFS", "Use the store it is for.")

    def read(self, fd: int, key: str) -> bytes | None:
        """The layout in the order in which it is written here; None: inherited."""
        try:
            value = os.getxattr(fd, key)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return None
            raise
        if key.endswith(".pool"):
            return value
        fields = dict(part.partition("=")[::2] for part in os.fsdecode(value).split(" "))
        return " ".join(f"{name}={fields.get(name, '')}" for name in FIELDS).encode()

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Set it; Ceph refuses a file that was ever written."""
        try:
            os.setxattr(fd, key, value)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise OSError(error.errno, "it holds data; CephFS places only new files") from None
            raise

    def remove(self, fd: int, key: str) -> None:
        """A directory goes back to what it inherits."""
        os.removexattr(fd, key.removesuffix(".pool"))


def _layout(hints: Mapping[str, str]) -> tuple[str, str]:
    """Striping for a block size, and for whole regions where the file is scattered."""
    block = int(hints["BlockSize"])
    placement = hints.get("DP", "")
    scattered = placement.startswith("scatter|")
    wanted = block * int(placement.partition("|")[2]) if scattered else block
    unit = min(MAX_OBJECT, max(1, -(-wanted // UNIT)) * UNIT)
    size = unit if scattered else unit * max(1, DEFAULT_OBJECT // unit)
    said = f"{'DP=' + placement + ' ' if scattered else ''}BlockSize={block}"
    return f"stripe_unit={unit} stripe_count=1 object_size={size}", said
