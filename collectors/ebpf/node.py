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

from tracehint.collectors.base import Follow
from tracehint.collectors.ebpf.node_locks import locked
from tracehint.collectors.ebpf.node_place import Place
from tracehint.errors import CollectorError, TracehintError

_READY_SECONDS = 60
_BACKLOG = 4096


def _connected(place: Place) -> socket.socket | None:
    """A connection to the recorder that listens there, if one of this user does."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(_READY_SECONDS)
    try:
        client.connect(str(place.socket))
    except OSError:
        client.close()
        return None
    if _peer(client)[1] != os.geteuid():
        client.close()
        return None
    return client


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
    with locked(place.lock) as lock:
        if is_recording(place):
            os.close(ready)
            os.close(told)
            return None
        place.socket.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(str(place.socket))
        if detach and not _became_background(place, keep={server.fileno(), told}, lose=lock):
            server.close()
            os.close(told)
            _wait_until_ready(place, ready)
            return 0
        server.listen(_BACKLOG)  # by the process that `stop` waits for
    # an opening of its own: the one above is another's; nobody removes it while one listens
    own = os.open(place.lock, os.O_RDWR | os.O_CLOEXEC)
    for fd in (server.fileno(), own, told):
        os.set_inheritable(fd, True)
    code = 1
    try:
        code = record(
            Follow(
                listen=server.fileno(), lock=own, ready=told, idle=idle, missed=str(place.missed)
            )
        )
    except TracehintError as error:
        if not detach:
            raise
        os.write(2, f"{error}\n".encode("utf-8", "replace"))
    finally:
        _tidy(place, server)
        if detach:
            os._exit(code)
    return code


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


def _became_background(place: Place, keep: set[int], lose: int) -> bool:
    """Go on as a process of its own: not a child of the task, which waits for its children only.

    False in the caller, True in the new process.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    os.close(lose)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    log, null = os.open(place.log, flags, 0o600), os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, null), (1, null), (2, log)):
        os.dup2(source, target)
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)  # a task's pipes must end with the task
    return True


def _wait_until_ready(place: Place, ready: int) -> None:
    readable, _, _ = select.select([ready], [], [], _READY_SECONDS)
    said = os.read(ready, 1) if readable else b""
    os.close(ready)
    if said == b"r":
        return
    place.socket.unlink(missing_ok=True)
    why = place.log.read_text(errors="replace").strip() if place.log.exists() else ""
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
