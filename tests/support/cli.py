"""Run the command line as users do: a process of its own."""

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


def tracehint(
    *arguments: str | Path, cwd: Path = Path(), env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """`python -m tracehint ...` in `cwd`, with what it printed.

    Where the process needs nothing special it is forked from one that has loaded the libraries.
    """
    words, values = list(map(str, arguments)), {**os.environ, **(env or {})}
    if more or not forked.fits(values):
        return process(*words, cwd=cwd, env=values, **more)
    code, *said = forked.run(words, cwd, values, PATIENCE_S)
    texts = [text.decode("utf-8", "surrogateescape").replace("\r\n", "\n") for text in said]
    return subprocess.CompletedProcess(["tracehint", *words], code, *texts)


def process(
    *arguments: str | Path, cwd: Path = Path(), env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """The same begun as users begin it: for what is decided before the first command."""
    return subprocess.run(
        [sys.executable, "-m", "tracehint", *map(str, arguments)],
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
    """The same inside this process: quick, for commands that run no other program."""
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
