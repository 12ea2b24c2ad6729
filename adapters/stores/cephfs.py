"""CephFS: layouts and pins, as virtual attributes of files and directories. Tried with 16.2.15.

A layout acts on a file that never held data, or through the directory in which a file is created.
Pools of nodes (for local and collocated placement) are made by the admin and named by a --map file.
The monitors report the location of objects, over one connection for any number of files.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import About, Capability, Gap, Location, Setting, capability_key
from tracehint.adapters.stores.grammar import number_of
from tracehint.adapters.stores.places import NAME, NO_DIRECTORY_DEFAULT, Placing
from tracehint.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.plan import Kind

TIMEOUT_S = 60
LIBRARY = "librados.so.2"


@dataclass(frozen=True)
class Question:
    """A command of the monitors and its arguments, in order."""

    prefix: str
    words: Mapping[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """Return the input line for `ceph`; every word must be a plain name."""
        return " ".join([self.prefix, *self.words.values()])

    def data(self) -> bytes:
        """Return the JSON command for librados."""
        return json.dumps({"prefix": self.prefix, **self.words, "format": "json"}).encode()


def ask_ceph(questions: Sequence[Question]) -> list[str]:
    """Return a JSON answer for each. Raises OSError (Ceph's message), MissingDependencyError."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return _ask_by_tool(questions)
    with _connect(library) as cluster:
        return [_send_question(library, cluster, question) for question in questions]


@contextmanager
def _connect(library: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
    """Connect as user CEPH_ID (admin), with the configuration CEPH_CONF, or the default one."""
    cluster = ctypes.c_void_p()
    user = os.environ.get("CEPH_ID", "admin").encode()
    _check(library.rados_create(ctypes.byref(cluster), user), "a Ceph client cannot be created")
    try:
        _check(library.rados_conf_read_file(cluster, None), "no Ceph configuration found")
        library.rados_conf_parse_env(cluster, None)
        for option in (b"rados_mon_op_timeout", b"client_mount_timeout"):
            library.rados_conf_set(cluster, option, b"%d" % TIMEOUT_S)
        _check(library.rados_connect(cluster), "Ceph's monitors cannot be reached")
        # Without authentication a command may be sent before the map that names the cluster.
        _check(library.rados_wait_for_latest_osdmap(cluster), "Ceph did not send its map")
        yield cluster
    finally:
        library.rados_shutdown(cluster)


def _send_question(library: ctypes.CDLL, cluster: ctypes.c_void_p, question: Question) -> str:
    command = (ctypes.c_char_p * 1)(question.data())
    out, message = ctypes.c_void_p(), ctypes.c_void_p()
    length, said_length = ctypes.c_size_t(), ctypes.c_size_t()
    code = library.rados_mon_command(
        cluster,
        command,
        ctypes.c_size_t(1),
        None,
        ctypes.c_size_t(0),
        ctypes.byref(out),
        ctypes.byref(length),
        ctypes.byref(message),
        ctypes.byref(said_length),
    )
    try:
        text = ctypes.string_at(message, said_length.value) if message else b""
        _check(code, text.decode("utf-8", "backslashreplace")[:200] or "Ceph refused to answer")
        return ctypes.string_at(out, length.value).decode("utf-8", "backslashreplace").strip()
    finally:
        for buffer in (out, message):
            library.rados_buffer_free(buffer)


def _check(code: int, what: str) -> None:
    if code < 0:
        raise OSError(-code, f"{what} ({errno.errorcode.get(-code, -code)})")


def _ask_by_tool(questions: Sequence[Question]) -> list[str]:
    """Answer all questions with one call of `ceph`."""
    if shutil.which("ceph") is None:
        raise MissingDependencyError(
            "neither librados nor ceph is installed", "Debian: apt-get install ceph-common"
        )
    lines = "".join(f"{question.line()}\n" for question in questions)
    try:
        done = subprocess.run(
            ["ceph", "-f", "json"], input=lines.encode(), capture_output=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, "ceph did not answer") from None
    out = [line for line in done.stdout.decode("utf-8", "backslashreplace").splitlines() if line]
    if done.returncode != 0 or len(out) != len(questions):
        message = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        raise OSError(errno.EIO, message[-1][:200] if message else "ceph returned no answer")
    return out


MAX_OBJECTS = 4096  # objects of one file; more than that are sampled evenly, which is reported
FIELDS = ("stripe_unit", "stripe_count", "object_size")

Ask = Callable[[Sequence[Question]], list[str]]  # questions -> an answer in JSON for each


@dataclass(frozen=True)
class Striping:
    """A layout: `unit` and `size` of objects in bytes, `count` of objects per stripe."""

    unit: int
    count: int
    size: int


def objects(striping: Striping, length: int) -> Sequence[int]:
    """Return the numbers of objects for the first `length` bytes of a file, holes included."""
    if length <= 0 or striping.unit <= 0 or striping.count <= 0:
        return range(0)
    units = -(-length // striping.unit)
    per_object = max(1, striping.size // striping.unit)
    full, rest = divmod(units, per_object * striping.count)
    last = min(rest, striping.count)  # objects with a unit in the last stripe
    return range(full * striping.count + last)


def locate_files(fds: Sequence[int], ask: Ask) -> list[Location | None]:
    """Return the hosts of the OSDs that hold each open file's objects, most objects first.

    All files are looked up over one connection to the monitors. Raises OSError.
    """
    files = [_objects_of(fd) for fd in fds]
    asked = [command for _, commands, _ in files for command in commands]
    if not asked:
        return [None] * len(files)
    answers = iter(ask([*asked, Question("osd tree")]))
    acting = [json.loads(next(answers))["acting"] for _ in asked]
    host = _map_hosts(json.loads(next(answers))["nodes"])
    out: list[Location | None] = []
    at = 0
    for pool, commands, total in files:
        copies: dict[str, int] = {}
        for osds in acting[at : at + len(commands)]:
            for name in dict.fromkeys(host(osd) for osd in osds):
                copies[name] = copies.get(name, 0) + 1
        at += len(commands)
        nodes = tuple(sorted(copies, key=lambda name: -copies[name]))
        detail = {"copies": copies, "chunks": len(commands), "objects": total, "pool": pool}
        out.append(Location(nodes=nodes, detail=detail) if nodes else None)
    return out


def _objects_of(fd: int) -> tuple[str, list[Question], int]:
    """Return (pool, questions for its objects, number of objects) of an open file."""
    info = os.fstat(fd)
    fields = fields_of(os.getxattr(fd, "ceph.file.layout"))
    pool, space = fields.get("pool", ""), fields.get("pool_namespace", "")
    if not NAME.fullmatch(pool) or (space and not NAME.fullmatch(space)):
        raise OSError(errno.EINVAL, "the name of its pool is not allowed in a command")
    striping = Striping(*(int(fields[name]) for name in FIELDS))
    numbers = objects(striping, info.st_size)
    step = max(1, -(-len(numbers) // MAX_OBJECTS))
    where = {"nspace": space} if space else {}
    asked = [
        Question("osd map", {"pool": pool, "object": f"{info.st_ino:x}.{n:08x}", **where})
        for n in numbers[::step]
    ]
    return pool, asked, len(numbers)


def fields_of(value: bytes) -> dict[str, str]:
    """Parse the fields of a layout as Ceph prints it."""
    return dict(part.partition("=")[::2] for part in os.fsdecode(value).split(" "))


def _map_hosts(tree: Sequence[Mapping[str, object]]) -> Callable[[int], str]:
    """Return a function from an OSD to its host's name in the CRUSH map."""
    table: dict[int, str] = {}
    for node in tree:
        children = node.get("children")
        if node.get("type") == "host" and isinstance(children, list):
            table.update((child, str(node["name"])) for child in children)
    return lambda osd: table.get(osd, f"osd.{osd}")


UNIT = 64 << 10  # stripe units are multiples of it
MAX_OBJECT = 128 << 20  # osd_max_object_size
DEFAULT_OBJECT = 4 << 20
PIN, DISTRIBUTED_PIN = "ceph.dir.pin", "ceph.dir.pin.distributed"
UNSET = {PIN: b"-1", DISTRIBUTED_PIN: b"0"}  # pins always have a value; this one means none
KEYS = frozenset(
    f"ceph.{kind}.layout{part}" for kind in ("file", "dir") for part in ("", ".pool")
) | {*UNSET}

_POOL = "a pool per node (--map); its directory or an empty file"
_COPIES = "a pool per number of copies (--map), where reads spread over the copies"
_NO_SPREAD = (
    "does not pay: ceph-fuse reads every object from its first copy only, and writing the others "
    "costs time; where clients spread their reads (kernel mount with read_from_replica), "
    "state it in the --map file"
)
CAPABILITIES: dict[str, Capability] = {
    "DP=local": Capability(level="approximate", how=_POOL, acts=("directory", "creation")),
    "DP=collocation": Capability(
        level="approximate",
        acts=("directory", "creation"),
        how=f"{_POOL}; with several metadata servers the directory is pinned to one of them",
    ),
    "DP=scatter": Capability(
        level="approximate",
        acts=("directory", "creation"),
        how="one object per region; objects are placed pseudo-randomly, so two may share a node",
    ),
    "DP=distribute": Capability(
        level="approximate",
        acts=("any",),
        how="objects are spread anyway; with several metadata servers, a directory's "
        "subdirectories are spread over them",
    ),
    "Replication": Capability(
        level="approximate", acts=("directory", "creation"), how=f"{_COPIES}; else it {_NO_SPREAD}"
    ),
    "ReplicationSemantics": Capability(level="none", how="writes wait for all copies, always"),
    "BlockSize": Capability(
        level="full", how="rounded up to 64 KiB", acts=("directory", "creation")
    ),
    "CacheSize": Capability(level="none", how="a setting of the mount"),
    "Access": Capability(level="none", how="no such setting"),
    "Lifetime": Capability(level="none", how="no such setting"),
    "LastReader": Capability(level="none", how="no such setting"),
    "Metadata": Capability(
        level="full",
        acts=("any",),
        how="the directory is pinned to the rank that the --map file names (sites)",
    ),
}


ABOUT = About(
    state="works",
    tried="16.2.15 with ceph-fuse, November 2026",
    who="owner of the file or directory, with the capability flag p; pools by the administrator",
    read_back="`getfattr -n ceph.dir.layout`, `ceph.file.layout`",
    undo="directories: removed, or the former layout; files only while they are empty",
    cost="one call a setting",
    source="doc/cephfs/file-layouts.rst",
    tools=("ceph",),
)


@dataclass(frozen=True)
class CephFs(Placing):
    """The CephFS adapter; `places` names the pools.

    `ask` sends questions to the monitors and returns JSON for each.
    """

    name: str = "cephfs"
    title: str = "CephFS (layouts and pins)"
    about: About = ABOUT
    ask: Ask = ask_ceph

    def capabilities(self) -> Mapping[str, Capability]:
        """One entry per row of the vocabulary."""
        return CAPABILITIES

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Return at most a striping, a pool and a pin; a placement overrides a replication."""
        settings: dict[str, Setting] = {}
        gaps: list[Gap] = []
        folder = kind == "directory"
        layout = f"ceph.{'dir' if folder else 'file'}.layout"
        blocks = _make_striping(hints)
        for name, value in sorted(hints.items()):
            row, words = capability_key(name, value), f"{name}={value}"
            pool = self._pool(row, value, folder)
            pin = self._pin(row, value) if folder else None
            striped = blocks is not None and row in ("BlockSize", "DP=scatter")
            if pool is not None:
                key = f"{layout}.pool"
                if key in settings:
                    reason = f"{settings[key].hint} decides the pool"
                    gaps.append(Gap(hint=row, level="none", reason=reason))
                settings.setdefault(
                    key, Setting(key=key, value=pool.encode(), hint=words, by_name="@host" in pool)
                )
            if pin is not None:
                settings[pin[0]] = Setting(key=pin[0], value=pin[1], hint=words)
            if pool is None and pin is None and not striped:
                gaps.append(Gap(hint=row, level="none", reason=self._why_not(row, folder)))
            elif row == "DP=scatter":
                gaps.append(Gap(hint=row, level="approximate", reason=CAPABILITIES[row].how))
        if blocks is not None:
            striping, words = blocks
            settings[layout] = Setting(key=layout, value=striping.encode(), hint=words)
        return list(settings.values()), gaps

    def _pool(self, row: str, value: str, folder: bool) -> str | None:
        if row == "DP=local" and not (folder and self.late):
            return self.places.of_host(late=self.late)
        if row == "DP=collocation":
            return self.places.of_group(value.partition("|")[2])
        if row == "Replication":
            copies = number_of(value)
            return None if copies is None else self.places.of_copies(copies)
        return None

    def _pin(self, row: str, value: str) -> tuple[str, bytes] | None:
        """Return the pin of a directory to metadata servers; None: no pin."""
        site = self.places.of_site(value) if row == "Metadata" else None
        if site is not None:
            return PIN, site.encode()
        if self.places.ranks > 1 and row == "DP=distribute":
            return DISTRIBUTED_PIN, b"1"
        if self.places.ranks > 1 and row == "DP=collocation":
            rank = zlib.crc32(os.fsencode(value.partition("|")[2])) % self.places.ranks
            return PIN, b"%d" % rank
        return None

    def _why_not(self, row: str, folder: bool) -> str:
        if row == "DP=local" and folder and self.late:
            return NO_DIRECTORY_DEFAULT
        if row == "Replication" and not self.places.reads_spread:
            return _NO_SPREAD
        if row == "Metadata" and not folder:
            return "cephfs does not support it on a file"
        known = CAPABILITIES.get(row)
        return known.how if known else "unknown hint"

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Accept only layouts and pins."""
        if key not in KEYS:
            raise UsageError(
                f"{key[:80]!r} is not a layout or pin of CephFS", "Use the store that it is for."
            )

    def read(self, fd: int, key: str) -> bytes | None:
        """Return a pin, or a layout with FIELDS in order; None: inherited, or no pin."""
        try:
            value = os.getxattr(fd, key)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return None
            raise
        if key in UNSET:
            return None if value == UNSET[key] else value
        if key.endswith(".pool"):
            return value
        fields = fields_of(value)
        return " ".join(f"{name}={fields.get(name, '')}" for name in FIELDS).encode()

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Set the value; Ceph rejects it for a file that was ever written."""
        try:
            os.setxattr(fd, key, value)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise OSError(error.errno, "it holds data; CephFS places only new files") from None
            if error.errno == errno.EINVAL and key.endswith(".pool"):
                raise OSError(error.errno, "not a data pool of this file system") from None
            raise

    def remove(self, fd: int, key: str) -> None:
        """Make a directory inherit again; a file's layout can only be changed."""
        if key in UNSET:
            os.setxattr(fd, key, UNSET[key])
            return
        try:
            os.removexattr(fd, key.removesuffix(".pool"))
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise

    def locate(self, fd: int) -> Location | None:
        """Return the hosts of the OSDs that hold the file's objects, most objects first."""
        return self.locate_all([fd])[0]

    def locate_all(self, fds: Sequence[int]) -> list[Location | None]:
        """Locate many files over one connection to the monitors."""
        return locate_files(fds, self.ask)


def _make_striping(hints: Mapping[str, str]) -> tuple[str, str] | None:
    """Return (striping, hint) for a block size, or for whole regions if the file is scattered;
    None: no block size, or a value is not a number."""
    block = number_of(hints.get("BlockSize", ""))
    placement = hints.get("DP", "")
    scattered = placement.startswith("scatter|")
    parts = number_of(placement.partition("|")[2]) if scattered else 1
    if block is None or parts is None:
        return None
    wanted = block * parts
    unit = min(MAX_OBJECT, max(1, -(-wanted // UNIT)) * UNIT)
    size = unit if scattered else unit * max(1, DEFAULT_OBJECT // unit)
    hint = f"{'DP=' + placement + ' ' if scattered else ''}BlockSize={block}"
    return f"stripe_unit={unit} stripe_count=1 object_size={size}", hint
