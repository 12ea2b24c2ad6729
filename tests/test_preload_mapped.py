"""Pages of mapped files below the preload library: which were used, and that programs which do
something unusual with a mapping go on as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.ebpf import observed
from tests.support.preload import FEW, compiled, looked_at
from tracehint.collectors.preload import PreloadCollector
from tracehint.schemas.store import read_bundle

_CHECK = PreloadCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

PAGE = 4096
ALL = [(0, 256)]
Pages = list[tuple[int, int]]
# case -> pages read, pages written, in what was mapped
EXACT: dict[str, tuple[Pages, Pages]] = {
    "read_private": ([(3, 4), (100, 102)], []),
    "write_shared": ([(7, 8), (200, 201)], [(7, 8)]),
    "write_private": ([(7, 8)], []),
    "not_used": ([], []),
    "unmapped": ([(0, 1), (10, 11), (20, 21)], []),
    "made_writable": ([(3, 4), (9, 10)], [(9, 10)]),
    "executes": ([(3, 4)], []),
    "exec_fails": ([(3, 4), (9, 10)], []),
    "spawns": ([(3, 4), (9, 10)], []),
    "numbers": ([(1, 60)], []),
    "threads": ([(3, 4), (20, 40)], [(30, 40)]),
    # the mapped range: what is under it was changed, or nobody could look any more
    "closes_all": (ALL, []),
    "killed": (ALL, []),
    "mapped_over": (ALL, []),
    "middle_unmapped": (ALL, []),
    "moved": (ALL, []),
    "dropped": (ALL, []),
    "cut": (ALL, ALL),
    "watches_itself": (ALL, ALL),
}
# case -> a page that was used, of which those beside it are recorded too
BOUND = {"read_only_shared": 3, "forks": 40}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[tuple[str, str], Pages]]:
    """What the program printed, and pages by case and direction."""
    folder = tmp_path_factory.mktemp("mapped").resolve()
    text = (Path(__file__).parent / "preload" / "mapped.c").read_text()
    program = compiled(folder, "program", text, "-Wall", "-Wextra", "-Werror", "-pthread")
    for number in range(3):
        before, name = looked_at(), f"{number}.trace"
        done = tracehint(
            "record", "--quiet", "--collector", "preload", "-o", name, "--", program, cwd=folder
        )
        assert done.returncode == 0, done.stderr
        if looked_at() - before < FEW:
            break
    bundle = read_bundle(folder / name)
    assert bundle.problems == []
    assert bundle.tables["losses"].num_rows == 0
    pages: dict[tuple[str, str], Pages] = {}
    for (_, path, op, how), seen in observed(bundle, bytes(folder)).items():
        if how == "mmap" and path.rpartition(b"/")[2].decode() in EXACT.keys() | BOUND:
            assert not seen.exact
            spans = [(start // PAGE, -(-end // PAGE)) for start, end in seen.union()]
            pages.setdefault((Path(path.decode()).name, op), []).extend(spans)
    return done.stdout, pages


def test_every_program_ends_as_it_does_without_the_library(
    ran: tuple[str, dict[tuple[str, str], Pages]],
) -> None:
    ended = dict(line.split() for line in ran[0].splitlines())
    assert ended.keys() == EXACT.keys() | BOUND
    assert {case: status for case, status in ended.items() if status != "0"} == {"killed": "9"}


@pytest.mark.parametrize("case", EXACT)
def test_the_pages_are_those_that_were_used(
    ran: tuple[str, dict[tuple[str, str], Pages]], case: str
) -> None:
    assert tuple(ran[1].get((case, op), []) for op in ("read", "write")) == EXACT[case]


def test_what_cannot_be_watched_has_the_pages_beside_it(
    ran: tuple[str, dict[tuple[str, str], Pages]],
) -> None:
    for case, page in BOUND.items():
        assert any(start <= page < end for start, end in ran[1][case, "read"]), case
    assert ran[1]["forks", "write"][0] == (9, 10)  # by the parent; the child's are a bound
