"""Mutated strace logs: any line is counted and never fatal."""

from __future__ import annotations

import os
import random
import re
import time

import pytest

from tests import test_strace_parser
from tests.support.straced import parse

_TOKENS = [
    b"99999999999999999999", b"-1", b"0x", b"<", b">", b'"', b"\\", b") = ", b"(", b"[", b"{",
    b"\xff", b"", b"9223372036854775807", b"4611686018427387904", b"NULL", b"AT_FDCWD", b"/", b"..",
    b"<unfinished ...>", b"<... read resumed>", b" resumed>", b"+++ exited with 0 +++", b"1", b"2",
]  # fmt: skip  # a table
_LOG = re.compile(r"'(1 .*?)\\n'|^(1 .*)$", re.MULTILINE)


def _seeds() -> list[bytes]:
    """Return every line of the handwritten logs of the parser's tests."""
    assert test_strace_parser.__file__ is not None
    with open(test_strace_parser.__file__, encoding="utf-8") as stream:  # noqa: PTH123
        found = _LOG.findall(stream.read())
    lines = [line for pair in found for text in pair for line in text.split("\\n") if line]
    assert len(lines) > 80
    return [line.encode() for line in lines]


def _mutate(lines: list[bytes], dice: random.Random) -> list[bytes]:
    lines = list(lines)
    for _ in range(dice.randrange(1, 12)):
        at = dice.randrange(len(lines))
        line, cut = lines[at], dice.randrange(len(lines[at]) + 1)
        match dice.randrange(5):
            case 0:
                line = line[:cut] + dice.choice(_TOKENS) + line[cut:]
            case 1:
                line = line[:cut] + dice.choice(_TOKENS) + line[cut + dice.randrange(1, 20) :]
            case 2:
                line = line[:cut]
            case 3:
                numbers = list(re.finditer(rb"\d+", line))
                if numbers:
                    hit = dice.choice(numbers)
                    line = line[: hit.start()] + dice.choice(_TOKENS) + line[hit.end() :]
            case _:
                lines.insert(dice.randrange(len(lines)), line)
                continue
        lines[at] = line
    return lines


@pytest.mark.full
def test_mutated_logs_for_half_a_minute() -> None:
    seeds, seed = _seeds(), time.time_ns()
    dice = random.Random(seed)
    end, tried = time.monotonic() + float(os.environ.get("TRACEHINT_FUZZ_SECONDS", "30")), 0
    while time.monotonic() < end:
        lines = _mutate(dice.choices(seeds, k=dice.randrange(1, 40)), dice)
        data = b"\n".join(lines)
        try:
            parse(data)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {data!r}") from error
        tried += 1
    print(f"strace: seed {seed}, {tried} inputs")
    assert tried > 100


# Regressions found by fuzzing: numbers beyond the range of a column.
@pytest.mark.parametrize(
    "line",
    [
        b'4611686018427387904 1795168689.157 access("/x", R_OK) = 0',
        b"7 99999999999999999999.5 close(3) = 0",
        b'7 open("f", O_RDONLY) = 99999999999999999999',
        b"7 close(9223372036854775807) = 0",
        b"7 clone(flags=SIGCHLD) = 9223372036854775807",
        b'7 newfstatat(0</x>, "", {st_dev=makedev(0x8, 0), st_ino=99999999999999999999, '
        b"st_mode=S_IFREG|0644, st_size=1, ...}, AT_EMPTY_PATH) = 0",
        b'7 pread64(0</x>, "", 5, 9223372036854775807) = 5',
        b'7 read(0</x>, "", 5) = 9223372036854775807',
        b"7 lseek(0</x>, 0, SEEK_SET) = 9223372036854775807",
        b"7 +++ exited with 99999999999999999999 +++",
        b"7 ftruncate(0</x>, 9223372036854775807) = 0",
        b"7 mmap(NULL, 9223372036854775807, PROT_READ, MAP_SHARED, 0</x>, 0) = 0x7",
    ],
)
def test_numbers_beyond_all_bounds(line: bytes) -> None:
    tables, _ = parse(b'7 execve("/bin/p", ["p"], 0x7 /* 1 var */) = 0\n' + line)
    assert tables["processes"].num_rows >= 1
