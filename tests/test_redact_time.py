"""Redacting takes linear time, whatever a stranger wrote."""

from __future__ import annotations

import re
import time
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]

import pytest

from tracehint.schemas.redact import fields, shelltext, values, words
from tracehint.schemas.redact.commands import redact_argv, redact_text
from tracehint.schemas.redact.shapes import SHAPES

EVIL = (
    "sk-", "((((", "'", '"', "a=a=", "pass=", "password='", 'password="', "$(", "`", "<<a\n",
    "<<a ", "://a:", "://a@", "a:b@", "$'\\'", "\\", "token:", "--password ", "eyJaaaaaaaaa.eyJ",
    "-----BEGIN PRIVATE KEY-----", "mysql -p", "sh -c '", 'sh -c "', 'sh -c \\"', "${", "${a:-",
    "identified by '", "login a password ", "auth=('a','", "connect('a','b',", "aB", "curl -u",
    "<redacted>", 'password=\\"', "echo a|sudo -S ", "<<<", "docker login ", ";", "\n",
    "password\n", "{", "a b ", "\xe9", "AKIA", "x:", '"a":"b",', "password = ", "  ",
    "authorization: a ", "pass\\\\'",
)  # fmt: skip  # a table
SMALL = 4_000


def work(text: bytes) -> float:
    """CPU seconds of the faster of two."""
    best = 1e9
    for _ in range(2):
        began = time.process_time()
        redact_text(text)
        redact_argv([b"x", text])
        best = min(best, time.process_time() - began)
    return best


def sample(piece: str, size: int) -> bytes:
    raw = b"password " + piece.encode()
    return raw[:9] + raw[9:] * (size // len(raw[9:]))


@pytest.mark.slow
@pytest.mark.parametrize("piece", EVIL)
def test_eight_times_the_text_takes_no_more_than_eight_times_as_long(piece: str) -> None:
    """Quadratic work would take 64 times as long; the margin is for the machine."""
    tries = (
        work(sample(piece, 8 * SMALL)) / max(work(sample(piece, SMALL)), 0.004) for _ in range(3)
    )
    assert any(ratio < 30 for ratio in tries)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["sk-", "a=a=a="])
def test_a_megabyte_is_read(piece: str) -> None:
    """And its end is, too."""
    text = sample(piece, 1 << 20) + b"\n--password hunter2\n"
    new, hits = redact_text(text)
    assert b"hunter2" not in new
    assert hits == 1


def test_32_kilobytes_of_prefixes() -> None:
    text = b"sk-" * 10_923
    assert redact_text(text) == (text, 0)


def _patterns() -> list[re.Pattern[str]]:
    found = [re.compile(shape.pattern) for shape in SHAPES]
    found += [*fields._statements(), fields._url(), fields._bare_user(), fields._named()]
    found += [fields._bare_value(), shelltext._token(), shelltext._quoted(), words._OPTION]
    return [*found, values._LONG]


def _unbounded(parsed: object) -> list[object]:
    """Repeats without a bound that can give back what they took, anywhere in a pattern."""
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


def test_an_unbounded_pattern_would_be_found() -> None:
    assert _unbounded(_parser.parse("(?:a|b+)c"))
    assert not _unbounded(_parser.parse("(?:a|b++)c{0,4}"))
