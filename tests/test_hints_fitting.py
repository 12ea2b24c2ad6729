"""Which names templates fit: the same as their regexes, in bounded work."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.regex_match import by_regex
from tracehint.errors import InputError
from tracehint.hintgen.hints.template import HOLES, Subject, Template, members, parse, template_of

# Few letters, so that templates often fit: digits, hex, other letters, dash, slash, newline.
_BYTES = st.sampled_from([b"0", b"7", b"a", b"f", b"x", b"-", b"/", b"_", b"\n", b"\xff"])
_LITERAL = st.lists(_BYTES, min_size=1, max_size=3).map(b"".join)
_PARTS = st.lists(st.one_of(_LITERAL, st.sampled_from(sorted(HOLES))), min_size=1, max_size=6)
_TEXT = {
    "n": st.from_regex(r"[0-9]{1,45}", fullmatch=True),
    "uuid": st.just("123e4567-e89b-12d3-a456-426614174000"),
    "date": st.sampled_from(["20240131", "2024-01-31", "2024-0131", "202401-31"]),
    "hash": st.from_regex(r"[0-9a-f]{2,140}", fullmatch=True),
    "random": st.from_regex(r"[a-z0-9_]{5,13}", fullmatch=True),
    "word": st.from_regex(r"[a-z]{1,70}", fullmatch=True),
    "alnum": st.from_regex(r"[0-9a-zA-Z]{1,9}", fullmatch=True),
    "name": st.from_regex(r"[a-z0-9._\-]{1,300}", fullmatch=True),
    "dirs": st.lists(st.sampled_from(["a/", "7/", "xx-/"]), max_size=70).map("".join),
}


def _loose(parts: list[bytes | str]) -> Template | None:
    """Return the template, or None if a hint file may not contain it."""
    template = template_of(parts)
    try:
        parse(template.text)
    except InputError:
        return None
    return template


@pytest.mark.slow
@given(_PARTS, st.lists(_BYTES, max_size=14).map(b"".join))
@settings(max_examples=500, deadline=None)
@example([b"a", "n"], b"a7\n")
@example(["dirs", "name"], b"a//x")
@example(["dirs", "dirs"], b"a/")
def test_any_name_fits_as_the_regex_says(parts: list[bytes | str], name: bytes) -> None:
    template = _loose(parts)
    if template is not None:
        assert template.fit(Subject(name)) == template.match(name) == by_regex(template, name)


@pytest.mark.slow
@given(st.data(), _PARTS)
@settings(max_examples=250, deadline=None)
def test_names_made_for_a_template_fit_as_the_regex_says(
    data: st.DataObject, parts: list[bytes | str]
) -> None:
    template = _loose(parts)
    if template is None:
        return
    name = b"".join(
        part if isinstance(part, bytes) else data.draw(_TEXT[part]).encode()
        for part in template.parts
    )
    assert template.fit(Subject(name)) == template.match(name) == by_regex(template, name)


@pytest.mark.parametrize("name", sorted(set(HOLES) - {"dirs"}))
def test_the_atoms_of_a_placeholder_take_its_characters(name: str) -> None:
    taken = {
        byte for atom in HOLES[name].atoms for byte in range(256) if atom.chars[byte] == ord("1")
    }
    assert taken == HOLES[name].chars


def test_the_ends_of_each_placeholder() -> None:
    """Lengths at and next to the limits, also in names with many components."""
    for text, unit, sizes in (
        ("{n}", b"1", (0, 1, 40, 41)),
        ("{hash}", b"f", (1, 2, 128, 129)),
        ("{word}", b"w", (0, 1, 64, 65)),
        ("{alnum}", b"w", (0, 1, 128, 129)),
        ("{name}", b"w", (0, 1, 255, 256)),
        ("{dirs}x", b"d/", (0, 1, 64, 65)),
        ("{dirs}y", b"d" * 255 + b"/", (1, 3)),
        ("{dirs}z", b"d" * 256 + b"/", (1, 3)),
    ):
        template = parse(text)
        for size in sizes:
            name = unit * size + template.suffix
            assert template.fit(Subject(name)) == by_regex(template, name), (text, size)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{name}a{name}ab", b"a" * 4096),
        ("{dirs}{name}", b"a/" * 2048),
        ("{dirs}a{dirs}", b"a/" * 2047),
        ("{n}".join("_" * 40), b"1_" * 2048),
        ("".join(f"{{n}}{'a' * size}" for size in range(1, 48)), b"a" * 4096),
    ],
)
def test_no_template_makes_much_work_of_a_name(text: str, name: bytes) -> None:
    """Counted in steps over 128 positions: less than 50,000 for any template and name."""
    subject = Subject(name)
    parse(text).fit(subject)
    assert subject.work < 50_000


def test_members_are_of_bytes() -> None:
    assert members("[^/]").count(b"1") == 255
