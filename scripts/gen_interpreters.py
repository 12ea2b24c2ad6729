#!/usr/bin/env python3
"""Write collectors/preload/tag/interpreters.h from schemas/commandline; `--check` compares."""

from __future__ import annotations

import sys
from pathlib import Path

from generated import write_or_check

from tracehint.schemas.commandline.programs import INTERPRETERS, LONGEST, SHELLS

TARGET = (
    Path(__file__).resolve().parent.parent / "collectors" / "preload" / "tag" / "interpreters.h"
)
_HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/gen_interpreters.py from schemas/commandline/programs.py. */
#ifndef TRACEHINT_INTERPRETERS_H
#define TRACEHINT_INTERPRETERS_H

"""


def page() -> str:
    """Return the text of the header; lists have a blank before and after each word."""
    lines = [f"#define LONGEST {LONGEST}\n\n", f"static const char shells[] = {_list(SHELLS)};\n\n"]
    lines.append("static const struct interpreter {\n")
    lines.append("\tconst char *name, *values, *texts, *scripts;\n} interpreters[] = {\n")
    for name, options in INTERPRETERS.items():
        if options.script:
            lists = (options.values, options.texts, options.scripts)
            row = ", ".join(_list(words.split()) for words in lists)
            lines.append(f'\t{{"{name}", {row}}},\n')
    return _HEAD + "".join(lines) + "};\n\n#endif\n"


def _list(words: list[str] | frozenset[str]) -> str:
    ordered = words if isinstance(words, list) else sorted(words)
    return f'" {" ".join(ordered)} "' if ordered else '""'


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, page(), "gen_interpreters.py"))
