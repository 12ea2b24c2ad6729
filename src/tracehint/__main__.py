"""`python -m tracehint`, and the program `tracehint`."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from tracehint.cli import RUN_A_COMMAND, main


def run() -> None:
    """Run the command line and end the process.

    After a command of the user's it ends at once: to take numpy and Arrow apart that
    will not be used again costs 0.03 s of CPU, which counts as a cost of recording.
    """
    code = main()
    if sys.argv[1:2] and sys.argv[1] in RUN_A_COMMAND and threading.active_count() == 1:
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)  # the interpreter tells what could not be written
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
