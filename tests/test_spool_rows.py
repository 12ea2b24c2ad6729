"""Records selected and joined as numpy does it, and links followed as the system does."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.arena import totals_of_killed
from tracehint.schemas.spool.arena_links import RealPaths
from tracehint.schemas.spool.layout import (
    concat_records,
    distinct,
    filter_records,
    is_in,
    number_rows,
    take_records,
)


@pytest.mark.parametrize("count", [0, 1, 300])
def test_records_are_chosen_as_numpy_chooses_them(count: int) -> None:
    rng = np.random.default_rng(count)
    some = np.zeros(count, lay.EPISODE_DT)
    for name in ("open_id", "fd", "kind"):
        some[name] = rng.integers(0, 9, count)
    some["inner"]["ops"] = rng.integers(0, 9, count)
    mask, places = rng.random(count) < 0.5, rng.permutation(count)
    assert (filter_records(some, mask) == some[mask]).all()
    assert (take_records(some, places) == some[places]).all()
    assert (concat_records(some, some[mask]) == np.concatenate([some, some[mask]])).all()
    other = rng.integers(0, 9, count // 2).astype("<u8")
    assert (distinct(some["open_id"]) == np.unique(some["open_id"])).all()
    assert (is_in(some["open_id"], other) == np.isin(some["open_id"], other)).all()
    rows = list(zip(some["fd"].tolist(), some["open_id"].tolist(), strict=True))
    order = {row: i for i, row in enumerate(sorted(set(rows)))}
    assert number_rows(some["fd"], some["open_id"]).tolist() == [order[row] for row in rows]


def _tree(base: Path, rng: random.Random) -> list[bytes]:
    """Create directories, files and links (also dangling, to themselves, cyclic); return names."""
    folders, names = [base], [base]
    for i in range(60):
        at = rng.choice(folders) / f"n{i}"
        kind = rng.randrange(4)
        if kind == 0:
            at.mkdir()
            folders.append(at)
        elif kind == 1:
            at.touch()
        else:
            target = rng.choice([*names, at, Path("..") / "nothing", Path(), Path("../..")])
            relative = Path(os.path.relpath(target, at.parent)) if target.is_absolute() else target
            at.symlink_to(rng.choice([target, relative]))
            if at.is_dir() and base in at.resolve().parents:
                folders.append(at)
        names.append(at)
    (base / "ring1").symlink_to("ring2")
    (base / "ring2").symlink_to("ring1")
    names += [base / "ring1", base / "ring1" / "below", base / "nowhere" / "x"]
    texts = [os.fsencode(name) for name in names]
    return texts + [
        text + rng.choice([b"/", b"/.", b"/..", b"//n1", b"/../n2", b"/n3/n4"]) for text in texts
    ]


@pytest.mark.parametrize("seed", range(5))
def test_links_lead_where_the_system_goes(seed: int, tmp_path: Path) -> None:
    links = RealPaths(here=True)
    for text in _tree(tmp_path, random.Random(seed)):
        folder, name = os.path.split(text.rstrip(b"/"))
        there = Path(os.fsdecode(folder)).is_dir()
        if name not in (b".", b".."):
            real = os.path.realpath(folder) if there else os.path.normpath(folder)
            assert links.resolve_directories(text) == real + b"/" + name, text
        elif not there:
            continue
        try:
            inode = Path(os.fsdecode(text.rstrip(b"/"))).stat().st_ino
        except OSError:
            assert links.resolve_open(text, 1) == links.resolve_directories(text)
            continue
        assert links.resolve_open(text, inode) == os.path.realpath(text), text
        if name not in (b".", b".."):
            assert links.resolve_open(text, inode + 1) == links.resolve_directories(
                text
            )  # it now has another target


def test_links_mean_nothing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    links = RealPaths(here=False)
    text = os.fsencode(tmp_path / "link" / "etc" / "hosts")
    assert links.resolve_directories(text) == links.resolve_open(text, 1) == text


def test_a_long_path_of_existing_directories_is_no_burden(tmp_path: Path) -> None:
    links = RealPaths(here=True)
    text = os.fsencode(tmp_path) + b"/." * 1900 + b"/file"
    assert links.resolve_directories(text) == os.fsencode(tmp_path.resolve() / "file")


# -- Totals of a process that was killed between counting an operation and recording its extent


def episodes(count: int) -> NDArray[Any]:
    made = np.zeros(count, lay.EPISODE_DT)
    made["open_id"] = np.arange(count) + 7
    made["write_bytes"], made["write_ops"], made["small_ops"] = 27, 3, 3
    made["inner"]["op"], made["inner"]["ops"], made["inner"]["bytes"] = lay.OPS.index("write"), 1, 7
    return made


def extents(open_id: int) -> NDArray[Any]:
    made = np.zeros(1, lay.EXTENT_DT)
    made["open_id"] = open_id
    made["run"]["op"], made["run"]["ops"], made["run"]["bytes"] = lay.OPS.index("write"), 1, 10
    return made


def test_an_operation_without_its_run_goes_from_the_totals_of_an_open_file() -> None:
    made = episodes(3)
    made["close_ns"][1] = 5
    made["lost_ops"][2] = 1
    totals_of_killed(made, extents(7))
    assert made["write_bytes"].tolist() == [17, 27, 27]
    assert made["write_ops"].tolist() == [2, 3, 3]
    assert made["small_ops"].tolist() == [2, 3, 3]


def test_totals_that_agree_stay() -> None:
    made = episodes(1)
    made["write_bytes"], made["write_ops"] = 17, 2
    totals_of_killed(made, extents(7))
    assert (made["write_bytes"][0], made["write_ops"][0], made["read_bytes"][0]) == (17, 2, 0)
    totals_of_killed(made[:0], extents(7)[:0])
