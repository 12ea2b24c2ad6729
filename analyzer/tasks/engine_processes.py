"""Workflow engines and which of their processes are jobs: one record per engine in ENGINES.

To add an engine, append its record to ENGINES, with functions for its rules where needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tracehint.schemas.commandline.programs import command_of_xargs


@dataclass(frozen=True)
class Command:
    """The start of one program, as far as engine rules inspect it: words are bounded and decoded.

    `program` is the one that actually runs, without directories and version: for `python3 -m
    snakemake` and `perl /usr/bin/parallel` the module or script. `kind` is one of KINDS.
    """

    kind: str
    program: str
    words: tuple[str, ...]
    job_of: str = ""  # engine of which this command is one job, if the words alone show it


# fork: no exec yet, so still a copy of its parent; wrapper: starts another program for the same
# purpose (env, nice, timeout); script and inline: a shell; launcher: starts the ranks of one job;
# submitter: submits a job to a batch system; program: all others.
KINDS = ("fork", "program", "wrapper", "script", "inline", "launcher", "submitter")

# An engine inside a task of another one is cut further only if its rank is higher, or if it is the
# same engine again (make in make). A Makeflow rule that uses xargs stays one task.
SHELL, RUNNER, BUILDER, WORKFLOW = range(4)


def any_exec(command: Command) -> bool:
    """Whether the child is a job: it started a program that is not a submitter."""
    return command.kind != "submitter"


@dataclass(frozen=True)
class Engine:
    """Rules for which processes are an engine, and which of their children are its jobs.

    name: also the engine's name in `declared_tasks.engine`.
    rank: SHELL, RUNNER, BUILDER or WORKFLOW.
    matches: whether a command starts this engine.
    is_job: whether a child that started this command is a job; other children are helpers and
        belong to the engine.
    copies_are_jobs: a child that never starts a program is a job (a subshell), not a worker of
            the engine whose children are visited in turn.
    pipes: children that are connected by a pipe are one job.
    pool: its workers run the tasks of a driver elsewhere in the tree; the shells that lead to it
        are plumbing.
    captures: a child that writes nothing but a pipe to its parent is a helper (make's `$(shell)`).
    """

    name: str
    rank: int
    matches: Callable[[Command], bool]
    is_job: Callable[[Command], bool] = any_exec
    copies_are_jobs: bool = False
    pipes: bool = False
    captures: bool = False
    pool: bool = False


def runs(*programs: str) -> Callable[[Command], bool]:
    """Return a predicate: the command starts one of `programs`."""
    names = frozenset(programs)
    return lambda command: command.program in names


def runs_other_than(*helpers: str) -> Callable[[Command], bool]:
    """Return a predicate: the command starts none of `helpers`."""
    names = frozenset(helpers)
    return lambda command: command.program not in names


def never(_command: Command) -> bool:
    """Return False: for engines and jobs that are identified by their position in the tree."""
    return False


def is_inline(command: Command) -> bool:
    """Whether the command is a line for a shell: `sh -c LINE`."""
    return command.kind == "inline"


# Programs whose children are their own parts, not jobs. Versions are removed for the look-up.
_NOT_DRIVERS = """ar bazel cargo cc c++ clang clang++ cpp collect2 curl f77 f95 flang g++
    gcc gfortran ghc git go ifort ifx icc icpc icx icpx javac ld less ldd man mpicc mpicxx mpic++
    mpifort nvcc pip rsync rustc scp svn tar wget zip sort"""
NOT_DRIVERS = frozenset(_NOT_DRIVERS.split())
# Programs that run one other program, in a container, as another user or under observation. They
# drive nothing; the program that they run may be a driver.
_CARRIERS = "apptainer docker gdb ltrace perf podman singularity ssh strace sudo valgrind"
CARRIERS = frozenset(_CARRIERS.split())
# Processes of Python drivers that run alongside the tasks.
_SERVERS = frozenset({"interchange.py", "dask-scheduler", "ps", "kill", "uname", "lscpu"})
_DECORATION = re.compile(r"^[a-z0-9_]+-linux-(?:gnu|musl)\w*-|-\d+(?:\.\d+)*$")
_CWL_HELPERS = frozenset({"node", "nodejs", "git", "uname", "ldconfig", "lscpu", "udocker"})


def drives_nothing(program: str) -> bool:
    """Whether the program is a known tool that only starts its own parts: `gcc-12`."""
    name = _DECORATION.sub("", program)
    return name in NOT_DRIVERS or name in CARRIERS


def carries(command: Command) -> bool:
    """Whether the command only runs another program: `singularity exec`, `mpirun -n 1`."""
    return command.kind == "launcher" or _DECORATION.sub("", command.program) in CARRIERS


def _is_shell(command: Command) -> bool:
    return command.kind in ("script", "inline", "wrapper")


def _is_program_job(command: Command) -> bool:
    return command.kind != "submitter" and command.program not in _SERVERS


def _is_snakemake(command: Command) -> bool:
    return command.program == "snakemake" and command.job_of != "snakemake"


def _is_snakemake_job(command: Command) -> bool:
    return command.kind == "inline" or command.job_of == "snakemake"


def _is_parallel_job(command: Command) -> bool:
    return command.kind == "inline" and "/" in command.words[0]


def _shares_arguments_out(command: Command) -> bool:
    """Whether this is an xargs with an option such as -n, -I or -P: one command per part."""
    return command.program == "xargs" and not command_of_xargs(command.words)


def _is_nextflow_job(command: Command) -> bool:
    return any(word.endswith(".command.run") for word in command.words)


def _is_cwl_job(command: Command) -> bool:
    asks_version = len(command.words) > 1 and command.words[1] in ("--version", "version", "info")
    return command.program not in _CWL_HELPERS and not asks_version


# The first match wins. The first four must keep their positions, because their codes are fixed.
ENGINES: tuple[Engine, ...] = (
    # Shell scripts: the commands are the tasks, pipes are joined, `( ... )` is one task. The
    # shell's own reads and writes (builtins, redirections that it opens) are the engine's.
    Engine("shell", SHELL, _is_shell, copies_are_jobs=True, pipes=True),
    # The fallback: an unknown program that starts others drives them (`python workflow.py`). Its
    # forked copies (worker processes) are parts of it; their children are jobs too. A compiler
    # driver or an archiver that starts its own helpers is one task: NOT_DRIVERS.
    Engine("program", SHELL, never, _is_program_job, pipes=True),
    # Shells between a driver and a pool of workers: a batch system's or provider's job script.
    # Their other children (getconf, seq, kill) set up the pool and are no tasks.
    Engine("plumbing", SHELL, never, never),
    # GNU make (also BSD make, ninja): each child is a line of a recipe; make in make is cut again.
    # Which lines belong to one target is not visible in the process tree: each line is a task
    # unless a declared graph (`make --debug=j`, `make -np`) joins them.
    Engine("make", BUILDER, runs("make", "gmake", "bmake", "ninja", "remake"), captures=True),
    # Local jobs: every rule runs as `sh -c RULE`; other children are helpers (orted).
    Engine("makeflow", WORKFLOW, runs("makeflow"), is_inline),
    # `bash -c "set -euo pipefail; ..."` per job; other children (uname, cbc) are helpers. `run:`
    # rules and cluster jobs start Snakemake again with `--target-jobs`: that process is the job.
    Engine("snakemake", WORKFLOW, _is_snakemake, _is_snakemake_job),
    # A shell per job, started by its full path; probes are `sh`, hostname ...
    Engine("parallel", RUNNER, runs("parallel", "sem"), _is_parallel_job),
    # With options that divide the arguments. Otherwise it starts one command with all of them
    # (several if a command line would be too long) and is part of that command's task.
    Engine("xargs", RUNNER, _shares_arguments_out),
    # Local jobs: `bash -ue .command.run` in a work directory of its own is one task, with its
    # staging; git, ps and the like are helpers.
    Engine("nextflow", WORKFLOW, runs("nextflow"), _is_nextflow_job),
    # Also toil's runner: each tool is a child; node (expressions) and version checks are not.
    Engine("cwltool", WORKFLOW, runs("cwltool", "cwl-runner", "toil-cwl-runner"), _is_cwl_job),
    # Parsl's worker pool (and Work Queue, TaskVine workers): every program that a worker starts is
    # a task. Python apps run inside the worker: only TRACEHINT_TASK and marks separate those.
    Engine(
        "parsl",
        WORKFLOW,
        runs("process_worker_pool.py", "process_worker_pool", "work_queue_worker", "vine_worker"),
        runs_other_than("uname", "lscpu", "ldconfig", "hostname"),
        pool=True,
    ),
)
SHELL_CODE, PROGRAM_CODE, PLUMBING_CODE, MAKE_CODE = range(4)
# Bits of the engines that are pools of workers.
POOLS = sum(1 << i for i, engine in enumerate(ENGINES) if engine.pool)


def may_cut(outer: Engine, inner: Engine) -> bool:
    """Whether `inner`, found inside a job of `outer`, is cut into jobs of its own."""
    return inner.rank > outer.rank or (inner is outer and inner.rank > RUNNER)
