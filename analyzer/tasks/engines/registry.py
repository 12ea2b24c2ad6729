"""The table of engines. To add one: a file beside this one, and a line here."""

from __future__ import annotations

from tracehint.analyzer.tasks.engines import (
    cwltool,
    make,
    makeflow,
    nextflow,
    parallel,
    parsl,
    program,
    shell,
    snakemake,
    xargs,
)
from tracehint.analyzer.tasks.model import RUNNER, Engine

# The first that matches wins; shell and program come first so that their codes are 0 and 1.
ENGINES: tuple[Engine, ...] = (
    shell.ENGINE,
    program.ENGINE,
    make.ENGINE,
    makeflow.ENGINE,
    snakemake.ENGINE,
    parallel.ENGINE,
    xargs.ENGINE,
    nextflow.ENGINE,
    cwltool.ENGINE,
    parsl.ENGINE,
)
SHELL_CODE, PROGRAM_CODE = 0, 1


def may_cut(outer: Engine, inner: Engine) -> bool:
    """Whether `inner`, found inside a job of `outer`, is cut into jobs of its own."""
    return inner.rank > outer.rank or (inner is outer and inner.rank > RUNNER)
