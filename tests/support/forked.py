"""`python -m tracehint ...` by the fork server of this pytest worker (fork_server.py)."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support import fork_client

ROOT = Path(__file__).parents[2]
# First line of a shell script that uses `program`.
NAME_ITSELF = f"export {fork_client.SHELL}=$$\n"
# Variables that a process reads before a command: other values need a separate process.
AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_", "ARROW_", "OMP_",
            "OPENBLAS_", "MKL_", "ASAN_", "UBSAN_", "LSAN_")  # fmt: skip  # a table


def fits(env: Mapping[str, str]) -> bool:
    """Whether the server started with the values of AT_START in this environment."""
    return _at_start(env) == _server().began


def run(
    words: list[str], cwd: str | Path, env: Mapping[str, str], timeout: float
) -> tuple[int, bytes, bytes]:
    """Return the exit code in `subprocess`'s convention, standard output and standard error.

    Standard input is that of this process. Raises OSError if `cwd` does not exist, and
    TimeoutExpired after killing the process.
    """
    request = {"words": words, "cwd": str(Path(cwd).resolve(strict=True)), "env": dict(env)}
    out, write_out = os.pipe()
    err, write_err = os.pipe()
    with _asked(request, [0, write_out, write_err]) as answers:
        for stream in (write_out, write_err):
            os.close(stream)
        pid, _, said = answers.recv(100).partition(b"\n")
        assert pid, "the fork server ended: its reason is in the output of pytest"
        try:
            texts = _read([out, err, answers.fileno()], time.monotonic() + timeout)
        except TimeoutError:
            os.kill(int(pid), signal.SIGKILL)
            raise subprocess.TimeoutExpired(["tracehint", *words], timeout) from None
        finally:
            os.close(out)
            os.close(err)
    return int(said + texts[2]), texts[0], texts[1]


def _asked(request: dict[str, object], streams: list[int]) -> socket.socket:
    here, there = socket.socketpair()
    with there:
        socket.send_fds(_server().asked, [b"+"], [there.fileno()])
    text = json.dumps(request).encode("ascii") + b"\n"
    sent = socket.send_fds(here, [text], streams)
    here.sendall(text[sent:])
    return here


def _read(streams: list[int], end: float) -> list[bytes]:
    """Read each stream until it is closed. Raises TimeoutError."""
    found = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as waiting:
        for stream in streams:
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(max(0.0, end - time.monotonic()))
            if not ready and time.monotonic() >= end:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                found[key.fd] += data
                if not data:
                    waiting.unregister(key.fd)
    return [bytes(found[stream]) for stream in streams]


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


@cache
def usual() -> dict[str, str]:
    """Return the environment at the start of the tests, first requested by conftest.py."""
    return dict(os.environ)


def program(folder: Path) -> None:
    """Write `tracehint` into the folder, for the PATH of a shell that begins with `NAME_ITSELF`.

    Commands that the shell itself starts are forked: not for shells that send them signals.
    """
    server = _server()
    given = {"python": sys.executable, "names": AT_START, "values": server.began}
    words = [sys.executable, "-IS", fork_client.__file__, server.name, json.dumps(given)]
    file = folder / "tracehint"
    file.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    file.chmod(0o755)


@dataclass(frozen=True)
class _Server:
    """The socket for passing connections, the name of the socket for other processes, and the
    values of AT_START at its start."""

    asked: socket.socket
    name: str
    began: dict[str, str]


@cache
def _server() -> _Server:
    """Start the server of this process at the first call."""
    here, there = socket.socketpair()
    with there, socket.socket(socket.AF_UNIX) as listens:
        listens.bind("")  # the kernel chooses a name, which is freed with the socket
        listens.listen()
        name = listens.getsockname()[1:].decode()
        files = [there.fileno(), listens.fileno()]
        words = [sys.executable, "-m", "tests.support.fork_server", *map(str, files)]
        server = subprocess.Popen(
            words, cwd=ROOT, env=usual(), pass_fds=files, stdin=subprocess.DEVNULL
        )

    def end() -> None:
        here.close()
        server.wait()

    atexit.register(end)
    return _Server(here, name, _at_start(usual()))
