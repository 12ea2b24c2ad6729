"""One recorder for all tasks of a user on a node: starting, finding and ending it.

The recorder listens on a socket in a directory that only its user can enter;
tasks connect to it (`tracehint-join`, rec/join.c) and are followed from then
on. A task holds the lock, shared, while it connects; who starts a recorder, and
a recorder that ends, holds it alone. Files: SOCKET, SOCKET.lock, SOCKET.log.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import NoReturn

from tracehint.collectors.base import Follow
from tracehint.collectors.ebpf.node_locks import locked
from tracehint.collectors.ebpf.node_place import NODE_DIR, Place
from tracehint.errors import CollectorError, TracehintError
from tracehint.schemas.plain import open_plain

_READY_SECONDS = 60
_BACKLOG = 4096


def _connected(place: Place) -> socket.socket | None:
    """A connection to the recorder that listens there, if one of this user does."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(_READY_SECONDS)
    with contextlib.suppress(OSError):
        client.connect(str(place.socket))
        if _peer(client)[1] == os.geteuid():
            return client
    client.close()
    return None


def _peer(client: socket.socket) -> tuple[int, int]:
    """Process and user at the other end."""
    form = struct.Struct("3i")
    pid, uid, _ = form.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))
    return pid, uid


def is_recording(place: Place) -> bool:
    """Whether a recorder listens at the place."""
    client = _connected(place)
    if client is None:
        return False
    client.close()
    return True


def wait_for_recorder(place: Place, seconds: float) -> bool:
    """Wait until a recorder listens, at most so long."""
    end = time.monotonic() + seconds
    while not is_recording(place):
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def serve(
    place: Place, idle: float, record: Callable[[Follow], int], *, detach: bool
) -> int | None:
    """Start a recorder where there is none; None when one is there already.

    `record` follows what joins until the end and returns the exit code, which is
    returned. detach: do it in the background, and return 0 when it records.
    Raises CollectorError when it does not come to that.
    """
    ready, told = os.pipe()
    try:
        with locked(place.lock) as lock:
            if is_recording(place):
                os.close(ready)
                os.close(told)
                return None
            place.socket.unlink(missing_ok=True)
            server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            server.bind(str(place.socket))
            if detach:
                child = os.fork()
                if child == 0:
                    _in_background(place, server, record, idle, told=told, lose=lock)
                os.waitpid(child, 0)
                server.close()
                os.close(told)
                _wait_until_ready(place, ready)
                return 0
            server.listen(_BACKLOG)  # by the process that `stop` waits for
    except OSError as error:
        raise CollectorError(
            f"this node's recorder: {place.lock}: {error.strerror or error}",
            f"Set {NODE_DIR} to a directory of yours with mode 700 and a short name.",
        ) from None
    return _record(place, server, record, idle, told)


def _record(
    place: Place, server: socket.socket, record: Callable[[Follow], int], idle: float, told: int
) -> int:
    """Be the recorder until it ends."""
    # an opening of its own: the one above is another's; nobody removes it while one listens
    own = open_plain(place.lock, os.O_RDWR)
    for fd in (server.fileno(), own, told):
        os.set_inheritable(fd, True)
    try:
        return record(
            Follow(
                listen=server.fileno(), lock=own, ready=told, idle=idle, missed=str(place.missed)
            )
        )
    finally:
        _tidy(place, server)


def _tidy(place: Place, server: socket.socket) -> None:
    """Leave no socket behind, no lock, nor an empty log.

    Who holds the lock now starts another one, or waits for this one to record in vain.
    """
    server.close()
    with contextlib.suppress(OSError), locked(place.lock, wait=False):
        if not is_recording(place):
            place.socket.unlink(missing_ok=True)
            if place.log.exists() and not place.log.stat().st_size:
                place.log.unlink()
            place.lock.unlink()  # who waits for it looks again


def _in_background(
    place: Place,
    server: socket.socket,
    record: Callable[[Follow], int],
    idle: float,
    *,
    told: int,
    lose: int,
) -> NoReturn:
    """The recorder as a process of its own: not a child of the task, which waits for its own only.

    Called in a child of the task; whatever happens ends here, or the command would run twice.
    """
    code, log = 1, told
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(lose)
        _close_all(place, keep={server.fileno(), told})
        log = 2
        server.listen(_BACKLOG)
        code = _record(place, server, record, idle, told)
    except (TracehintError, OSError) as error:
        os.write(log, f"\n{error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _close_all(place: Place, keep: set[int]) -> None:
    """Say everything into the log, and hold nothing of the task: its pipes must end with it."""
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
    said = os.read(ready, 4000) if readable else b""
    os.close(ready)
    if said[:1] == b"r":
        return
    place.socket.unlink(missing_ok=True)
    why = said.decode("utf-8", "replace").strip()
    with contextlib.suppress(OSError), os.fdopen(open_plain(place.log), errors="replace") as log:
        why = why or log.read(4000).strip()
    raise CollectorError(
        "this node's recorder did not start" + (f": {why[:2000]}" if why else ""),
        "See `tracehint doctor`.",
    )


def stop(place: Place) -> bool:
    """End the recorder and wait until its bundle is written; False when there is none."""
    client = _connected(place)
    if client is None:
        return False
    with client:
        try:
            handle = os.pidfd_open(_peer(client)[0])
        except OSError:
            handle = -1
        client.send(b"s")
        with contextlib.suppress(OSError):
            client.recv(1)
    if handle >= 0:
        select.select([handle], [], [])
        os.close(handle)
    return True
