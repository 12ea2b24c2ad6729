"""The table of engines. To add one: a file beside this one, and a line here."""

from __future__ import annotations

from tracehint.analyzer.tasks.engines import (
    cwltool,
    make,
    makeflow,
    nextflow,
    parallel,
    parsl,
    plumbing,
    program,
    shell,
    snakemake,
    xargs,
)
from tracehint.analyzer.tasks.model import RUNNER, Engine

# The first that matches wins; these four come first: their codes are fixed.
ENGINES: tuple[Engine, ...] = (
    shell.ENGINE,
    program.ENGINE,
    plumbing.ENGINE,
    make.ENGINE,
    makeflow.ENGINE,
    snakemake.ENGINE,
    parallel.ENGINE,
    xargs.ENGINE,
    nextflow.ENGINE,
    cwltool.ENGINE,
    parsl.ENGINE,
)
SHELL_CODE, PROGRAM_CODE, PLUMBING_CODE, MAKE_CODE = range(4)
# Bits of the engines that are pools of workers.
POOLS = sum(1 << i for i, engine in enumerate(ENGINES) if engine.pool)


def may_cut(outer: Engine, inner: Engine) -> bool:
    """Whether `inner`, found inside a job of `outer`, is cut into jobs of its own."""
    return inner.rank > outer.rank or (inner is outer and inner.rank > RUNNER)
