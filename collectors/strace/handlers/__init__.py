"""Effects of system calls on the state: the functions named in calls.py."""

from __future__ import annotations

from collections.abc import Callable

from tracehint.collectors.strace.calls import ALWAYS, BYTES, IN_LOGS
from tracehint.collectors.strace.handlers import data, descriptors, names, process
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Thread
from tracehint.collectors.strace.state import State

Handler = Callable[[State, Thread, Call], None]

_MODULES = (data, descriptors, names, process)
_BY_NAME = {module.__name__.rpartition(".")[2]: module for module in _MODULES}


def _handler(where: str) -> Handler:
    module, _, name = where.partition(".")
    found: Handler = getattr(_BY_NAME[module], name)
    return found


HANDLERS: dict[bytes, Handler] = {
    name.encode(): _handler(where) for name, where in {**ALWAYS, **BYTES, **IN_LOGS}.items()
}
