"""Names under which files are made first: whatever a program draws, the next run's are known."""

from __future__ import annotations

import random
import string

import pytest

from tracehint.adapters.creation.made_as import _made_up, _templates


@pytest.mark.parametrize("seed", range(200))
def test_three_drawn_names_are_told_whatever_they_are(seed: int) -> None:
    dice = random.Random(seed)
    letters = string.ascii_letters + string.digits + "_"
    drawn = ["".join(dice.choices(letters, k=6)) for _ in range(3)]
    pairs = [(b"out/XX" + name.encode(), b"out/x%d.dat" % i) for i, name in enumerate(drawn)]
    found = set(_templates(pairs))
    assert len(found) == 1 and "{" in found.pop()


@pytest.mark.parametrize(
    "pairs",
    [
        [(b"a1.part", b"a1"), (b"a2.part", b"a2"), (b"a3.part", b"a3")],
        [(b"t.chrom1x", b"chrom1x"), (b"t.chrom2y", b"chrom2y"), (b"t.genom3z", b"genom3z")],
        [(b"d/abcd", b"x"), (b"d/efgh", b"y")],
        [(b"d/abcd", b"x"), (b"e/efgh", b"y"), (b"f/ijkl", b"z")],
        [(b"d/ab.cd", b"x"), (b"d/ef.gh", b"y"), (b"d/ij.kl", b"z")],
        [(b"d/same", b"x"), (b"d/same", b"y"), (b"d/same", b"z")],
    ],
)
def test_names_that_say_what_they_become_are_no_draws(pairs: list[tuple[bytes, bytes]]) -> None:
    assert _made_up(pairs) == {}
