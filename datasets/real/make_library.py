"""make_library.py FOLDER [--units 8]: a small C library, its Makefile and its test."""

from __future__ import annotations

import argparse
from pathlib import Path

MAKEFILE = """\
CC = cc
CFLAGS = -O1 -pipe
OBJECTS = {objects}

check.txt: check
	./check > check.txt

check: check.o libsum.a
	$(CC) -o check check.o libsum.a

libsum.a: $(OBJECTS)
	ar rcs libsum.a $(OBJECTS)

%.o: %.c sum.h
	$(CC) $(CFLAGS) -c -o $@ $<
"""


def unit(k: int) -> str:
    """Return a source file whose function sums a table of its own."""
    table = ", ".join(str((k * 31 + j * 17) % 1000) for j in range(4000))
    return (
        f'#include "sum.h"\nstatic const int table[] = {{{table}}};\n'
        f"int unit_{k}(void)\n{{\n\tint sum = 0;\n"
        "\tfor (unsigned j = 0; j < sizeof table / sizeof *table; j++)\n"
        "\t\tsum += table[j];\n\treturn sum;\n}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--units", type=int, default=8)
    args = parser.parse_args()
    numbers = range(args.units)
    comment = "/* " + "what every source file includes " * 100 + "*/\n"
    header = comment + "".join(f"int unit_{k}(void);\n" for k in numbers)
    (args.folder / "sum.h").write_text(header)
    for k in numbers:
        (args.folder / f"unit_{k}.c").write_text(unit(k))
    calls = " + ".join(f"unit_{k}()" for k in numbers)
    (args.folder / "check.c").write_text(
        '#include <stdio.h>\n#include "sum.h"\nint main(void)\n{\n'
        f'\treturn printf("%d\\n", {calls}) < 0;\n}}\n'
    )
    objects = " ".join(f"unit_{k}.o" for k in numbers)
    (args.folder / "Makefile").write_text(MAKEFILE.format(objects=objects))


if __name__ == "__main__":
    main()
