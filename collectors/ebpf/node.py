"""One recorder for all tasks of a user on a node: starting, finding and ending it.

The recorder listens on a socket in a directory that only its user can enter; tasks connect to it
(`tracehint-join`, rec/join.c) and are followed from then on. A task that connects holds the lock
shared; a process that starts a recorder, and a recorder that ends, hold it exclusively. Files:
SOCKET, SOCKET.lock, SOCKET.log.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import select
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tracehint.collectors.base import Follow
from tracehint.collectors.begin import BUNDLE_DIR
from tracehint.collectors.ebpf.collector import LOADER
from tracehint.collectors.ebpf.missed import missed_file
from tracehint.collectors.hostinfo import host_name
from tracehint.errors import CollectorError, TracehintError
from tracehint.schemas.plain import open_plain

PATIENCE_S = 60.0  # a starting recorder holds its lock for one or a few seconds
_RETRY_S = 0.02


@contextlib.contextmanager
def hold_lock(
    path: Path, *, wait: bool = True, shared: bool = False, patience: float = PATIENCE_S
) -> Iterator[int]:
    """Hold the lock. Raises BlockingIOError if another process holds it.

    With `wait`, that is raised after `patience` seconds. Other OSErrors: the file cannot be
    created, or it is not a plain file of this user.
    """
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    end = time.monotonic() + (patience if wait else 0)
    fd = _open_locked(path, how, end)
    while not _still_named(fd, path):
        os.close(fd)
        fd = _open_locked(path, how, end)
    try:
        yield fd
    finally:
        with contextlib.suppress(OSError):  # a recorder in the background has closed it
            os.close(fd)


def _open_locked(path: Path, how: int, end: float) -> int:
    fd = open_plain(path, os.O_RDWR | os.O_CREAT)
    try:
        while True:
            try:
                fcntl.flock(fd, how | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise BlockingIOError(errno.EAGAIN, "another process holds the lock") from None
                time.sleep(_RETRY_S)
    except BaseException:
        os.close(fd)
        raise


def _still_named(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


JOIN = LOADER.parent / "tracehint-join"
NODE_DIR = "TRACEHINT_NODE_DIR"  # replaces /tmp/tracehint-UID


@dataclass(frozen=True)
class Place:
    """Paths of the recorder for this user, host and bundle directory."""

    socket: Path
    bundles: Path
    host: str

    @property
    def lock(self) -> Path:
        """Lock file, held shared by connecting tasks."""
        return Path(f"{self.socket}.lock")

    @property
    def log(self) -> Path:
        """Standard error of a recorder in the background."""
        return Path(f"{self.socket}.log")

    @property
    def missed(self) -> Path:
        """File with one line per task that could not be followed."""
        return missed_file(self.bundles, self.host)

    def prefix(self) -> list[str]:
        """Return the words that, put before a command, make it join."""
        return [str(JOIN), str(self.socket), str(self.missed), "--"]


def node_place(host: str = "") -> Place:
    """Return the place for this environment, with its directory created. Raises CollectorError."""
    bundles = Path(os.path.abspath(os.environ.get(BUNDLE_DIR) or "."))  # noqa: PTH100
    name = host_name(host)
    # a nested pid namespace has its own pids: an outer recorder cannot follow its tasks
    space = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    key = hashlib.sha256(
        f"{os.fspath(bundles)}\0{name}\0{space}".encode("utf-8", "surrogateescape")
    )
    try:
        bundles.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CollectorError(
            f"{bundles}: cannot be created: {error.strerror}", f"Set {BUNDLE_DIR} to another path."
        ) from None
    return Place(_private_folder() / key.hexdigest()[:16], bundles, name)


def _private_folder() -> Path:
    """Create a directory that only this user can enter. Raises CollectorError."""
    path = Path(os.environ.get(NODE_DIR) or f"/tmp/tracehint-{os.geteuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise CollectorError(
            f"{path}: cannot be created: {error.strerror}", f"Set {NODE_DIR} to another path."
        ) from None
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o77
    if not safe:
        raise CollectorError(
            f"{path}: is not a directory that only this user can access",
            f"Remove it, or set {NODE_DIR} to your own directory with mode 700.",
        )
    return path


_READY_SECONDS = 60
_BACKLOG = 4096


def _connect(place: Place) -> socket.socket | None:
    """Return a connection to the recorder of this user that listens there, or None."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(_READY_SECONDS)
    with contextlib.suppress(OSError):
        client.connect(str(place.socket))
        if _read_peer(client)[1] == os.geteuid():
            return client
    client.close()
    return None


def _read_peer(client: socket.socket) -> tuple[int, int]:
    """Return the pid and uid of the peer."""
    form = struct.Struct("3i")
    pid, uid, _ = form.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))
    return pid, uid


def is_recording(place: Place) -> bool:
    """Whether a recorder listens at the place."""
    client = _connect(place)
    if client is None:
        return False
    client.close()
    return True


def wait_for_recorder(place: Place, seconds: float) -> bool:
    """Wait at most `seconds` until a recorder listens; return whether one does."""
    end = time.monotonic() + seconds
    while not is_recording(place):
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def serve(
    place: Place, idle: float, record: Callable[[Follow], int], *, detach: bool
) -> int | None:
    """Start a recorder and return its exit code; None if one is running already.

    `record` follows the tasks that join until the end and returns the exit code. detach: run it in
    the background, and return 0 when it records. Raises CollectorError if it cannot start.
    """
    ready, status = os.pipe()
    try:
        with hold_lock(place.lock) as lock:
            if is_recording(place):
                os.close(ready)
                os.close(status)
                return None
            place.socket.unlink(missing_ok=True)
            server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            server.bind(str(place.socket))
            if detach:
                child = os.fork()
                if child == 0:
                    _run_in_background(place, server, record, idle, status=status, lock=lock)
                os.waitpid(child, 0)
                server.close()
                os.close(status)
                _wait_until_ready(place, ready)
                return 0
            server.listen(_BACKLOG)  # in the process that `stop` waits for
    except OSError as error:
        raise CollectorError(
            f"this node's recorder: {place.lock}: {error.strerror or error}",
            f"Set {NODE_DIR} to your own directory with mode 700 and a short name.",
        ) from None
    return _run_recorder(place, server, record, idle, status)


def _run_recorder(
    place: Place, server: socket.socket, record: Callable[[Follow], int], idle: float, status: int
) -> int:
    """Run the recorder in this process until it ends."""
    # opened again: that of `serve` is the starter's; the file stays while a recorder listens
    own = open_plain(place.lock, os.O_RDWR)
    for fd in (server.fileno(), own, status):
        os.set_inheritable(fd, True)
    try:
        return record(
            Follow(
                listen=server.fileno(), lock=own, ready=status, idle=idle, missed=str(place.missed)
            )
        )
    finally:
        _remove_leftovers(place, server)


def _remove_leftovers(place: Place, server: socket.socket) -> None:
    """Remove the socket, the lock and an empty log, unless another process holds the lock.

    Its holder starts another recorder, or waits in vain for this one to record.
    """
    server.close()
    with contextlib.suppress(OSError), hold_lock(place.lock, wait=False):
        if not is_recording(place):
            place.socket.unlink(missing_ok=True)
            if place.log.exists() and not place.log.stat().st_size:
                place.log.unlink()
            place.lock.unlink()  # waiting processes check the name again


def _run_in_background(
    place: Place,
    server: socket.socket,
    record: Callable[[Follow], int],
    idle: float,
    *,
    status: int,
    lock: int,
) -> NoReturn:
    """Run the recorder as a process that is not a child of the task, as that waits for its
    children.

    Called in a child of the task, which always ends here, or the command would run twice.
    """
    code, log = 1, status
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(lock)
        _detach_descriptors(place, keep={server.fileno(), status})
        log = 2
        server.listen(_BACKLOG)
        code = _run_recorder(place, server, record, idle, status)
    except (TracehintError, OSError) as error:
        os.write(log, f"\n{error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _detach_descriptors(place: Place, keep: set[int]) -> None:
    """Send stderr to the log and close the task's descriptors: its pipes must end with it."""
    log = open_plain(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, null), (1, null), (2, log)):
        os.dup2(source, target)
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)


def _wait_until_ready(place: Place, ready: int) -> None:
    readable, _, _ = select.select([ready], [], [], _READY_SECONDS)
    reply = os.read(ready, 4000) if readable else b""
    os.close(ready)
    if reply[:1] == b"r":
        return
    place.socket.unlink(missing_ok=True)
    why = reply.decode("utf-8", "replace").strip()
    with contextlib.suppress(OSError), os.fdopen(open_plain(place.log), errors="replace") as log:
        why = why or log.read(4000).strip()
    raise CollectorError(
        "this node's recorder did not start" + (f": {why[:2000]}" if why else ""),
        "See `tracehint doctor`.",
    )


def stop(place: Place) -> bool:
    """End the recorder and wait until its bundle is written; return False if there is none."""
    client = _connect(place)
    if client is None:
        return False
    with client:
        try:
            handle = os.pidfd_open(_read_peer(client)[0])
        except OSError:
            handle = -1
        client.send(b"s")
        with contextlib.suppress(OSError):
            client.recv(1)
    if handle >= 0:
        select.select([handle], [], [])
        os.close(handle)
    return True
