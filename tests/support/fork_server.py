"""A process that has loaded the product and its libraries, and forks for each command line.

Loading numpy, Arrow, DuckDB and networkx takes three quarters of a small command; a pytest worker
starts hundreds. The server runs no command itself: one thread, no file open except its own. Its
child becomes what `python -m tracehint` would be: directory, environment, streams, `sys.argv` and
`sys.path` are those of the request, and `tracehint.__main__` ends it.

A request is one byte and a connection over the socket that the server was given, or a connection to
its listening socket (fork_client.py). The connection carries the three streams and a line of JSON
(`words`, `cwd`, `env`); the server returns the process and its exit code in `subprocess`'s
convention, a line each.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import socket
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = ("difflib", "duckdb", "networkx", "numpy.ma", "numpy.random", "pyarrow.compute",
             "pyarrow.dataset", "pyarrow.parquet", "rich.console", "rich.padding", "rich.table",
             "rich.text")  # fmt: skip  # a table
NOT_LOADED = ("tracehint.__main__",)  # it reads sys.argv when it is loaded


def serve(asked: socket.socket, listens: socket.socket) -> None:
    """Fork for each request until the pytest worker closes its socket."""
    waiting = selectors.DefaultSelector()
    for source in (asked, listens):
        waiting.register(source, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                connection = _handed(asked) if key.fileobj is asked else listens.accept()[0]
                if connection is None:
                    return
                pid, answer = _forked(connection)
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, answer))
                continue
            waiting.unregister(key.fd)
            os.close(key.fd)
            pid, answer = key.data
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with answer, contextlib.suppress(OSError):  # the client may have given up
                answer.sendall(b"%d\n" % code)


def _handed(asked: socket.socket) -> socket.socket | None:
    """Return the connection that the pytest worker sent; None if the worker ended."""
    _, found, _, _ = socket.recv_fds(asked, 1, 1)
    return socket.socket(fileno=found[0]) if found else None


def _forked(connection: socket.socket) -> tuple[int, socket.socket]:
    text, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    pid = os.fork()
    if not pid:
        _become(json.loads(text), streams)
    for stream in streams:
        os.close(stream)
    connection.sendall(b"%d\n" % pid)
    return pid, connection


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Become what `python -m tracehint` is in its own process."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        os.closerange(3, highest + 1)
        os.chdir(os.fsencode(request["cwd"]))
        os.environ.clear()
        os.environ.update(request["env"])
        tempfile.tempdir = None
        sys.path[0] = str(Path.cwd())
        _streams()
        code = _ended(request["words"])
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _streams() -> None:
    """Open Python's streams on the descriptors, as Python does if they are no terminal."""
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace",
        line_buffering=True,
    )  # fmt: skip  # a table


def _ended(words: list[str]) -> int:
    """Run the command; return its exit code after everything that Python does at exit."""
    from tracehint import __main__ as program
    from tracehint.interrupts import end_quietly

    end_quietly()
    sys.modules["__main__"] = program  # the module that multiprocessing loads in its processes
    sys.argv[:] = [str(program.__file__), *words]
    try:
        program.run()
        code: object = 0
    except SystemExit as error:
        code = error.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    return code if isinstance(code, int) else int(code is not None)


def load() -> None:
    """Load what any command loads, without numpy's threads and without pandas."""
    import tracehint
    from tracehint.schemas.arrow import skip_pandas

    before = dict(os.environ)
    skip_pandas()
    for library in LIBRARIES:
        importlib.import_module(library)
    # in a clone, tracehint.__path__ contains the clone too, and with it the tests
    product = str(Path(str(tracehint.__file__)).parent)
    for module in pkgutil.walk_packages([product], "tracehint."):
        if module.name not in NOT_LOADED and "spark" not in module.name:
            # a library that is not installed here, a file that was removed since the installation
            with contextlib.suppress(ImportError, FileNotFoundError):
                importlib.import_module(module.name)
    os.environ.clear()
    os.environ.update(before)


if __name__ == "__main__":
    load()
    gc.collect()
    gc.freeze()  # otherwise each child copies the pages of the objects that it collects
    serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
    os._exit(0)  # skip the libraries' finalisation
