"""`tracehint` on the PATH of a shell that a test runs (forked.program): calls the fork server.

Started as `python -IS fork_client.py SERVER VALUES WORD...`: takes a few milliseconds instead of
the time to load the libraries. SERVER is the name of the server's socket; VALUES, as JSON, what the
server read at its start. Commands that the shell's own children start, so all within a recording,
and commands with other values at their start run in a separate process.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path

SHELL = "TRACEHINT_TEST_SHELL"  # pid of the shell itself, which its last command may replace


def main(server: str, values: str, *words: str) -> int:
    """Return the exit code; end by the signal that ended the command."""
    given = json.loads(values)
    begun = {
        name: value for name, value in os.environ.items() if name.startswith(tuple(given["names"]))
    }
    shell = int(os.environ.get(SHELL, 0))
    if shell not in (os.getppid(), os.getpid()) or begun != given["values"]:
        os.execv(given["python"], [given["python"], "-m", "tracehint", *words])
    request = {"words": words, "cwd": str(Path.cwd()), "env": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(b"\0" + server.encode())
        text = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [text], [0, 1, 2])
        connection.sendall(text[sent:])
        answers = connection.makefile().read().splitlines()
    code = int(answers[1])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
