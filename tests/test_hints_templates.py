"""Templates: what they match, how they are written, and what a hostile one cannot do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile import HOSTILE_NAMES
from tracehint.errors import InputError
from tracehint.hintgen.hints.pathtext import to_bytes, to_text
from tracehint.hintgen.hints.template import Template, parse, template_of
from tracehint.hintgen.learn.candidates import merge_fields, template_of_shape
from tracehint.hintgen.text.masks import shapes_of


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_survive_as_text_and_as_templates(name: bytes) -> None:
    assert to_bytes(to_text(name)) == name
    assert to_text(name).isprintable()
    template = Template((name,))
    assert parse(template.text) == template
    assert template.match(name) == ()
    assert template.match(name + b"x") is None


@given(st.binary(min_size=1, max_size=60).filter(lambda raw: b"\0" not in raw))
def test_every_name_fits_the_template_of_its_own_shape(raw: bytes) -> None:
    shape = shapes_of(pa.array([raw], pa.binary()))[0].as_py()
    template = template_of_shape(shape)
    assert template.match(raw) is not None
    if sum(isinstance(part, str) for part in template.parts) <= 48:
        assert parse(template.text).parts == template.parts


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"proj/p_tile_07.fits", "proj/p_tile_{n}.fits"),
        (b"out-7ad729864a79597b71b8b8d8d86d7738.dat", "out-{hash}.dat"),
        (b"/b6/e95c72d7ef9da13b7641118999df15/x.txt", "/{hash}/{hash}/x.txt"),
        (b"a/2024-01-31/r.csv", "a/{date}/r.csv"),
        (b"j_123e4567-e89b-12d3-a456-426614174000.log", "j_{uuid}.log"),
        (b"decade.txt", "decade.txt"),
        (b"a{b}c\\1", "a\\{b\\}c\\\\{n}"),
    ],
)
def test_shape_of_a_name(path: bytes, expected: str) -> None:
    shape = shapes_of(pa.array([path], pa.binary()))[0].as_py()
    assert template_of_shape(shape).text == expected


def test_only_fields_that_vary_become_placeholders() -> None:
    shapes = [b"c\0nm-h\0n.fits", b"c\0nm-j\0n.fits", b"c\0nm-k\0n.fits"]
    assert template_of(merge_fields(shapes)).text == "c{n}m-{word}{n}.fits"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a{b}",
        "a}b",
        "a{n",
        "x\\q",
        "{name}{name}{name}{name}",
        "{any*}",
        "a" * 5000,
        "{name}" * 60,
        "{alnum}a{alnum}b{alnum}c.d",
    ],
)
def test_templates_that_are_not_ours_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_the_loosest_template_allowed_ends() -> None:
    """Without the limits, backtracking on this path would take years."""
    template = parse("{name}a{name}ab")
    path = b"a" * 4000
    assert template.match(path) is None
