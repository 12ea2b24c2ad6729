"""`python -m tracehint`, and the program `tracehint`."""

from __future__ import annotations

import gc
import sys

from tracehint.interrupts import EXIT_INTERRUPTED, end_quietly

if __name__ == "__main__" or sys.argv[0].endswith("tracehint"):
    end_quietly()
    # Imports create about 100,000 objects and no garbage. A collection at every 700 objects, the
    # default, would add 13 ms of CPU to each recording.
    gc.set_threshold(100_000)

import atexit
import os
import threading

from tracehint.cli import RUN_A_COMMAND, main
from tracehint.errors import EXIT_FAILED
from tracehint.streams import flush_stdout, hold


def run() -> None:
    """Run the command line and end the process.

    After a user's command and after an interrupt the process exits without the interpreter's
    shutdown. Tearing down numpy and Arrow would add 0.03 s of CPU to each recording. After an
    interrupt, a thread that imports a module can wait forever for an import that was interrupted
    in this thread, and the results of other threads are not needed.
    """
    hold()
    code = main()
    end_quietly()
    ran = sys.argv[1:2] and sys.argv[1] in RUN_A_COMMAND and threading.active_count() == 1
    at_once = ran or code == EXIT_INTERRUPTED
    if at_once:
        atexit._run_exitfuncs()
    if not flush_stdout():
        os._exit(code or EXIT_FAILED)  # the interpreter would flush again and exit with 120
    if at_once:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
