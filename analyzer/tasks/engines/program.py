"""The fallback: an unknown program that starts others drives them (`python workflow.py`).

Its forked copies (worker processes) are parts of it; their children are jobs too. A compiler
driver or an archiver that starts its own helpers is one task: NOT_DRIVERS.
"""

from __future__ import annotations

import re

from tracehint.analyzer.tasks.model import SHELL, Command, Engine

# Programs whose children are their own parts, not jobs. Versions are cut off before the look-up.
_NOT_DRIVERS = """ar bazel cargo cc c++ clang clang++ cpp collect2 curl f77 f95 flang g++
    gcc gfortran ghc git go ifort ifx icc icpc icx icpx javac ld less ldd man mpicc mpicxx mpic++
    mpifort nvcc pip rsync rustc scp svn tar wget zip sort"""
NOT_DRIVERS = frozenset(_NOT_DRIVERS.split())
# Programs that run one other program, in a container, as another user or under observation. They
# drive nothing; what they run may be a driver.
_CARRIERS = "apptainer docker gdb ltrace perf podman singularity ssh strace sudo valgrind"
CARRIERS = frozenset(_CARRIERS.split())
# Parts of drivers in Python that run beside the tasks.
_SERVERS = frozenset({"interchange.py", "dask-scheduler", "ps", "kill", "uname", "lscpu"})
_DECORATION = re.compile(r"^[a-z0-9_]+-linux-(?:gnu|musl)\w*-|-\d+(?:\.\d+)*$")


def drives_nothing(program: str) -> bool:
    """Whether the program is a known tool that only starts its own parts: `gcc-12`."""
    name = _DECORATION.sub("", program)
    return name in NOT_DRIVERS or name in CARRIERS


def carries(command: Command) -> bool:
    """Whether the command only runs another program: `singularity exec`, `mpirun -n 1`."""
    return command.kind == "launcher" or _DECORATION.sub("", command.program) in CARRIERS


def _never(_command: Command) -> bool:
    return False  # chosen by position (the root of a run), not by its words


def _is_job(command: Command) -> bool:
    return command.kind != "submitter" and command.program not in _SERVERS


ENGINE = Engine(name="program", rank=SHELL, matches=_never, is_job=_is_job, pipes=True)
