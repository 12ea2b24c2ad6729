"""Redaction takes linear time on any input."""

from __future__ import annotations

import re
import time
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]

import pytest

from tracehint.schemas.commandline import shelltext
from tracehint.schemas.redact import commands, text, values
from tracehint.schemas.redact.commands import redact_argv, redact_text
from tracehint.schemas.redact.rules import SHAPES

EVIL = (
    "sk-", "((((", "'", '"', "a=a=", "pass=", "password='", 'password="', "$(", "`", "<<a\n",
    "<<a ", "://a:", "://a@", "a:b@", "$'\\'", "\\", "token:", "--password ", "eyJaaaaaaaaa.eyJ",
    "-----BEGIN PRIVATE KEY-----", "mysql -p", "sh -c '", 'sh -c "', 'sh -c \\"', "${", "${a:-",
    "identified by '", "login a password ", "auth=('a','", "connect('a','b',", "aB", "curl -u",
    "<redacted>", 'password=\\"', "echo a|sudo -S ", "<<<", "docker login ", ";", "\n",
    "password\n", "{", "login('a','", "password for a = '", "h:1:d:u:", "aB1", "send \"",
    "jdbc:oracle:thin:a/", "user = \"a:", "-u bob -p ", "set token ", "/t/aaaaaaaaa",
    "a b ", "\xe9", "AKIA", "x:", '"a":"b",', "password = ", "  ",
    "authorization: a ", "pass\\\\'",
)  # fmt: skip  # a table
SMALL = 2_000


def work(data: bytes) -> float:
    """Return the CPU seconds of redacting this data."""
    began = time.process_time()
    redact_text(data)
    redact_argv([b"x", data])
    return time.process_time() - began


def sample(piece: str, size: int) -> bytes:
    raw = b"password " + piece.encode()
    return raw[:9] + raw[9:] * (size // len(raw[9:]))


@pytest.mark.slow
@pytest.mark.parametrize("piece", EVIL)
def test_eight_times_the_text_takes_no_more_than_eight_times_as_long(piece: str) -> None:
    """Quadratic work would take 64 times as long; the margin allows for noise."""
    tries = (
        work(sample(piece, 8 * SMALL)) / max(work(sample(piece, SMALL)), 0.004) for _ in range(6)
    )
    assert any(ratio < 30 for ratio in tries)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["sk-", pytest.param("a=a=a=", marks=pytest.mark.full)])
def test_a_quarter_of_a_megabyte_is_read(piece: str) -> None:
    """Its end is redacted, too."""
    text = sample(piece, 1 << 18) + b"\n--password hunter2\n"
    new, hits = redact_text(text)
    assert b"hunter2" not in new
    assert hits == 1


def test_32_kilobytes_of_prefixes() -> None:
    text = b"sk-" * 10_923
    assert redact_text(text) == (text, 0)


def _patterns() -> list[re.Pattern[str]]:
    found = [re.compile(shape.pattern) for shape in SHAPES]
    found += [
        *text._statements(),
        text._url(),
        text._bare_user(),
        text._named_value_regex(),
        text._call(),
    ]
    found += [text._argument(), text._bare_value(), text._STATEMENT_WORD, commands._OPTION]
    found += [shelltext._token(), shelltext._in_quotes(), shelltext._quotes_regex()]
    return [*found, values._CANDIDATE, values._RUN, values._HOST, values._TEXTS, commands._NAME]


def _unbounded(parsed: object) -> list[object]:
    """Return unbounded repeats that can backtrack, anywhere in a pattern."""
    found: list[object] = []
    for code, argument in parsed:  # type: ignore[attr-defined]
        if code in (sre.MAX_REPEAT, sre.MIN_REPEAT) and argument[1] == sre.MAXREPEAT:
            found.append((code, argument))
        stack = [argument]
        while stack:
            inner = stack.pop()
            if isinstance(inner, _parser.SubPattern):
                found += _unbounded(inner)
            elif isinstance(inner, (tuple, list)):
                stack += inner
    return found


@pytest.mark.parametrize("pattern", _patterns(), ids=range(len(_patterns())))
def test_patterns_are_bounded_or_possessive(pattern: re.Pattern[str]) -> None:
    assert not _unbounded(_parser.parse(pattern.pattern, pattern.flags))
