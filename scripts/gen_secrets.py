#!/usr/bin/env python3
"""Write docs/reference/secrets.md from the redactor's tables; `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from generated import fill

from tracehint.schemas.redact import rules
from tracehint.schemas.redact.text import STATEMENTS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "secrets.md"


def part(name: str) -> str:
    """Return a part of the page: the programs whose arguments are text, or all tables."""
    if name == "programs":
        return _list(rules.TEXT_TAKERS) + ".\n"
    return "\n".join(["## Names\n", *_names(), *_headers(), *_shapes(), *_programs()])


def _names() -> Iterable[str]:
    yield (
        '`--NAME VALUE`, `--NAME=VALUE`, `NAME=VALUE`, `NAME: VALUE`, `"NAME": "VALUE"`, '
        '`NAME <- "VALUE"`, `setenv NAME VALUE`, `set -x NAME VALUE` (fish) and `${NAME:-VALUE}` '
        "where one of these words is part of NAME "
        "(`DB_PASSWORD`, `trustStorePassword`, `fs.s3a.secret.key`):\n"
    )
    yield "| part of NAME | words |\n|---|---|"
    yield f"| the word | {_list(rules.STRONG)} |"
    yield f"| the ending of a word | {_list(rules.ENDINGS)} |"
    yield f"| `key` after | {_list(rules.KEY_OF)} |"
    yield (
        "| `key`, `auth` or `bearer` with a random value (mixed letters and digits, or 32 "
        f"hexadecimal digits), not after | {_list(rules.NO_KEY_OF)} |"
    )
    yield f"| none of them before a word for something else | {_list(rules.ABOUT)} |\n"
    yield f"* Plain words are no secrets behind {_list(rules.MADE)} (`--token gene`).\n"


def _headers() -> Iterable[str]:
    yield "## Headers, URLs, statements\n"
    yield "* `Authorization:` of any scheme (the scheme stays), `Cookie:`, `X-...-Token:` and every"
    yield "  other header with such a name."
    yield "* `scheme://user:S@host`, a token as user, `user:S@host`."
    yield from (f"* {what}" for what in STATEMENTS)
    calls = ", ".join(f"`{name}()`" for name in rules.CALLS)
    yield "* XML: `<NAME>S</NAME>` with such a NAME."
    yield "* `-u USER -p SECRET` of any program, where the value is no plain word, number or file."
    yield (
        "* Arguments that are no plain words of a program with a secret's name, and behind a "
        "subcommand such as `reset-admin-password` (a name with one of "
        f"{_list(rules.VERBS)}); {_list(rules.VALUES)} behind a secret's name that is stored."
    )
    yield f"* {_list(rules.KEYS)}: a value that looks made by chance."
    yield (
        "* What `echo`, `printf` or a here-document give to a program that reads a secret: "
        "a program with a secret's name (`chpasswd`), `--password-stdin` of any program, "
        "and those of the table.\n"
    )
    readers = (f"{name} {word}".strip() for name, word in rules.STDIN_READERS.items())
    yield "| what is secret | words |\n|---|---|"
    yield f"| arguments of calls, also of those with a secret's name (`set_api_key()`) | {calls} |"
    yield (
        "| VALUE of `NAME VALUE` without a dash; elsewhere where it is no plain word | "
        f"after {_list(rules.SETTERS)} |"
    )
    yield f"| standard input of | {_list(sorted(readers))} |\n"


def _shapes() -> Iterable[str]:
    yield "## Shapes\n"
    shapes = ", ".join(dict.fromkeys(shape.what for shape in rules.SHAPES))
    yield f"| tokens in any position |\n|---|\n| {shapes} |\n"


def _programs() -> Iterable[str]:
    yield "## Programs\n"
    yield (
        "`-p+`: only attached (`-pSECRET`); `-P`: the next word, or attached; `-u:`: what follows "
        "the sign in the value (`USER:SECRET`); `@2`: the second argument that is no option; `@=`: "
        "each argument `NAME=SECRET`; `~`: where the value is no plain word. `*` is any program.\n"
    )
    yield "| program | secret |"
    yield "|---|---|"
    alike: dict[str, list[str]] = {}
    for program, options in rules.PROGRAMS.items():
        alike.setdefault(options, []).append(program)
    for options, programs in alike.items():
        said = ", ".join(f"`{p}`" for p in programs)
        yield f"| {said} | {', '.join(f'`{o}`' for o in options.split())} |"
    yield ""


def _list(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))


if __name__ == "__main__":
    sys.exit(fill(TARGET, part, "gen_secrets.py"))
