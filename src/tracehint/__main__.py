"""`python -m tracehint`, and the program `tracehint`."""

from __future__ import annotations

import gc
import sys

from tracehint.interrupts import EXIT_INTERRUPTED, end_quietly

if __name__ == "__main__" or sys.argv[0].endswith("tracehint"):
    end_quietly()
    # Modules that are loaded make a hundred thousand objects and no garbage, which is looked for at
    # every 700: 13 ms of CPU of each recording.
    gc.set_threshold(100_000)

import atexit
import os
import threading

from tracehint.cli import RUN_A_COMMAND, main
from tracehint.errors import EXIT_FAILED
from tracehint.streams import flush_stdout, hold


def run() -> None:
    """Run the command line and end the process.

    After a command of the user's it ends at once: to take numpy and Arrow apart that
    will not be used again costs 0.03 s of CPU, which counts as a cost of recording. So it does
    after an interrupt: a thread that loads a module waits for ever where the interrupt met this
    one in the middle of that, and what other threads have begun nobody wants.
    """
    hold()
    code = main()
    end_quietly()
    ran = sys.argv[1:2] and sys.argv[1] in RUN_A_COMMAND and threading.active_count() == 1
    at_once = ran or code == EXIT_INTERRUPTED
    if at_once:
        atexit._run_exitfuncs()
    if not flush_stdout():
        os._exit(code or EXIT_FAILED)  # the interpreter would try again, and end with 120
    if at_once:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
