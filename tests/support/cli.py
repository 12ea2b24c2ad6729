"""Run the command line as users do, in a separate process."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import forked
from tests.support.patience import PATIENCE_S

TRACEHINT = [sys.executable, "-m", "tracehint"]
# Commands that only read and write files: within this process they take a third of the time.
INSIDE = ("analyze", "compare", "diff", "emit", "export", "graph", "hints", "lint", "plan",
          "predict", "report")  # fmt: skip  # a table


def tracehint(
    *arguments: str | Path, cwd: Path = Path(), env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run `python -m tracehint ...` in `cwd`; return its exit code and output.

    A process without special needs is forked from one that has loaded the libraries, or is this
    one.
    """
    words, values = list(map(str, arguments)), {**os.environ, **(env or {})}
    if words[:1] and words[0] in INSIDE and not env and not more:
        return inside(*words, cwd=cwd)
    if more or not forked.fits(values):
        return process(*words, cwd=cwd, env=values, **more)
    code, *said = forked.run(words, cwd, values, PATIENCE_S)
    texts = [text.decode("utf-8", "surrogateescape").replace("\r\n", "\n") for text in said]
    return subprocess.CompletedProcess(["tracehint", *words], code, *texts)


def said(folder: Path, *words: str | Path, status: int = 0) -> str:
    """Return the output, then the errors, of a command that must end with this exit code."""
    done = tracehint(*words, cwd=folder)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def record_words(
    *command: str | Path, collector: str, to: str | Path = "run.trace", options: str = "--quiet"
) -> list[str]:
    """Return the words that record the command; `options` of `record` are separated by blanks."""
    words = ["record", *options.split(), "--collector", collector, "-o", str(to), "--"]
    return [*words, *map(str, command)]


def record(
    *command: str | Path,
    cwd: Path,
    collector: str,
    to: str | Path = "run.trace",
    options: str = "--quiet",
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """Record the command in `cwd`."""
    words = record_words(*command, collector=collector, to=to, options=options)
    return tracehint(*words, cwd=cwd, **more)


def process(
    *arguments: str | Path, cwd: Path = Path(), env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Start the command as users do, for behaviour that is decided before the first command."""
    return subprocess.run(
        [*TRACEHINT, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=PATIENCE_S,
        check=False,
        **more,
    )


def inside(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it inside this process: quick, for commands that run no other program."""
    from tracehint.cli import main

    words = list(map(str, arguments))
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in range(2))
    before = Path.cwd()
    os.chdir(cwd)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    finally:
        os.chdir(before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "surrogateescape"))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, *texts)
