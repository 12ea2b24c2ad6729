#!/usr/bin/env python3
"""Write docs/reference/secrets.md from the redactor's tables; `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from generated import write_or_check

from tracehint.schemas.redact import names
from tracehint.schemas.redact.fields import STATEMENTS
from tracehint.schemas.redact.options import OPTIONS, STDIN_READERS, TEXT_TAKERS
from tracehint.schemas.redact.shapes import SHAPES

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "secrets.md"
_HEAD = """# Secrets in commands

Made by `scripts/gen_secrets.py` from the tables in `schemas/redact/`.

Every command that enters a bundle loses its secrets: arguments and markers of recorded processes
(eBPF, strace, bpftrace, Darshan), commands, names and identifiers of tasks that an engine declares
(`import`, `--workflow`), names given with `tracehint task`, and the command line in the manifest.
What is secret becomes `<redacted>`; the rest stays as it was. `--keep-args` turns that off for a
recording, and `merge` keeps what was kept. File names are not commands: a secret in the name of a
file stays.

It is a list of what is known, not a proof: a secret that has no name, no known shape and no known
program around it stays. Of 318 commands with secrets in `tests/redact/` 316 lose them, of 324
harmless ones none is touched; of the half that was written before the redactor was first run and
kept aside, 157 of 160 lost them and 5 of 160 were touched at that first run.
"""
_VALUES = """## What is never taken out

References (`$X`, `${X}`, `$(cat f)`, `{wildcard}`, `%s`), file names (`--token tokens.txt`,
`/run/secrets/x`, `@file`), `true`, `none`, `auto` and the like, numbers after PASS and TOKEN
(`-pass 1`), calls and elements in program text (`token = line.split()`).

## Shell text

The texts of `sh -c`, of recipes and of job logs are read as a shell reads them: quotes, `$'...'`,
`${X:-S}`, pipes, `$(...)`, here-documents and here-strings. A program is found wherever it stands:
behind `timeout`, `nice`, `sudo`, `env`, `srun`, `xargs`, `docker exec`, `find -exec`, `ssh`. Words
with blanks in them are command text of their own, up to five shells deep; below that names and
shapes are still found. Words of these programs are text also where they begin with `NAME=`:
"""


def page() -> str:
    """The page."""
    parts = [_HEAD, "## Names\n", *_names(), *_headers(), *_shapes(), *_programs()]
    parts += [_VALUES, ", ".join(f"`{name}`" for name in sorted(TEXT_TAKERS)) + ".\n"]
    return "\n".join(parts)


def _names() -> Iterable[str]:
    yield (
        '`--NAME VALUE`, `--NAME=VALUE`, `NAME=VALUE`, `NAME: VALUE`, `"NAME": "VALUE"`, '
        '`NAME <- "VALUE"`, `setenv NAME VALUE`, `set -x NAME VALUE` (fish) and `${NAME:-VALUE}` '
        "where one of these words is part of NAME "
        "(`DB_PASSWORD`, `trustStorePassword`, `fs.s3a.secret.key`):\n"
    )
    yield f"* {_list(names.STRONG)}; or a word that ends so: {_list(names.ENDINGS)}."
    yield f"* `key` after one of {_list(names.KEY_OF)}."
    yield (
        "* `key` or `auth` by themselves, where the value looks made by chance (long, or letters "
        "of both cases and digits); never after " + _list(names.NO_KEY_OF) + "."
    )
    yield f"* None of them where a word behind says what else it is: {_list(names.ABOUT)}.\n"


def _headers() -> Iterable[str]:
    yield "## Headers, URLs, statements\n"
    yield "* `Authorization:` of any scheme (the scheme stays), `Cookie:`, `X-...-Token:` and every"
    yield "  other header with such a name."
    yield "* `scheme://user:S@host`, a token as user, `user:S@host`."
    yield from (f"* {what}" for what in STATEMENTS)
    yield (
        "* What `echo`, `printf` or a here-document give to a program that reads a secret: "
        + ", ".join(f"`{f'{name} {word}'.strip()}`" for name, word in STDIN_READERS.items())
        + ", `--password-stdin` of any program.\n"
    )


def _shapes() -> Iterable[str]:
    yield "## Shapes\n"
    yield "Wherever they stand: " + ", ".join(dict.fromkeys(s.what for s in SHAPES)) + ".\n"


def _programs() -> Iterable[str]:
    yield "## Programs\n"
    yield (
        "`-p+`: only attached (`-pSECRET`); `-P`: the next word, or attached; `-u:`: what follows "
        "the sign in the value (`USER:SECRET`); `@2`: the second argument that is no option.\n"
    )
    yield "| program | secret |"
    yield "|---|---|"
    alike: dict[str, list[str]] = {}
    for program, options in OPTIONS.items():
        alike.setdefault(options, []).append(program)
    for options, programs in alike.items():
        said = ", ".join(f"`{p}`" for p in programs)
        yield f"| {said} | {', '.join(f'`{o}`' for o in options.split())} |"
    yield ""


def _list(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, page(), "gen_secrets.py"))
