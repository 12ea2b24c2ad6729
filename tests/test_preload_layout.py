"""The arena of the preload library: the C header and the NumPy types agree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from tests.support.preload import SOURCES
from tracehint.collectors.preload import arena
from tracehint.schemas.spool import arena_layout, arena_links, layout


def test_each_structure_has_the_same_places_in_c(tmp_path: Path) -> None:
    lines = []
    for name, dtype in arena_layout.STRUCTS.items():
        lines.append(f'printf("{name} size %zu\\n", sizeof(struct {name}));')
        lines += [
            f'printf("{name} {f} %zu\\n", __builtin_offsetof(struct {name}, {f}));'
            for f in dtype.names or ()
        ]
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stdio.h>\n#include "arena.h"\nint main(void) {\n' + "\n".join(lines) + "\n}\n"
    )
    program = tmp_path / "layout"
    subprocess.run(["gcc", "-I", SOURCES, "-o", program, source], check=True)
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split("\n")
    want = []
    for name, dtype in arena_layout.STRUCTS.items():
        want.append(f"{name} size {dtype.itemsize}")
        want += [f"{name} {f} {dtype.fields[f][1]}" for f in dtype.names or () if dtype.fields]
    assert found[:-1] == want


def test_the_constants_are_those_of_the_header() -> None:
    text = (SOURCES / "arena.h").read_text()
    for name, value in {
        "TH_ARENA_MAGIC": f"{arena_layout.MAGIC:#x}ULL",
        "TH_ARENA_VERSION": str(arena_layout.VERSION),
        "TH_CHUNK_MAGIC": f"{arena_layout.CHUNK_MAGIC:#x}U",
        "TH_ARENA_PAGE": str(arena_layout.PAGE),
        "TH_UNIT": f"({arena_layout.UNIT >> 20}ULL << 20)",
        "TH_UNITS": str(arena_layout.UNITS),
        "TH_EVENT": str(arena_layout.EVENT),
        "TH_BRIEF": str(arena_layout.BRIEF),
        "TH_FIRST": str(arena_layout.FIRST),
    }.items():
        assert f"#define {name} {value}".lower() in text.lower(), name


def test_who_makes_the_file_has_the_same_header() -> None:
    head = arena_layout.HEAD_DT
    assert head.fields
    assert (arena.MAGIC, arena.ARENA_VERSION) == (arena_layout.MAGIC, arena_layout.VERSION)
    assert (arena.UNIT, arena.UNITS) == (arena_layout.UNIT, arena_layout.UNITS)
    assert head.fields["units"][1] == arena.UNITS_AT
    assert head.fields["lost"][1] == arena.HEAD.size
    assert arena.FIRST % arena_layout.PAGE == 0 and head.itemsize <= arena.FIRST
    assert arena.READY == arena_layout.UNIT_READY


def test_links_are_found_at_the_same_places() -> None:
    """arena_links.py works without NumPy."""
    head, page = arena_layout.CHUNK_DT, arena_layout.PAGE_DT
    for record, dtype, names in (
        (arena_links._CHUNK, head, ("magic", "kind", "size", "epoch", "used")),
        (arena_links._EPISODE, layout.EPISODE_DT, ("kind", "path", "ino")),
        (arena_links._BRIEF, arena_layout.BRIEF_DT, ("kind", "ino", "path")),
        (arena_links._NAME, layout.NAME_DT, ("off", "new_off")),
    ):
        data = np.arange(dtype.itemsize, dtype=np.uint8)
        row = data.view(dtype)[0]
        assert record.unpack(data.tobytes()) == tuple(int(row[name]) for name in names)
    assert page.fields
    assert (page.fields["first"][1], arena_layout.FIRST) == (
        arena_links._FIRST_AT,
        arena_links._FIRST,
    )
    assert arena_links._KINDS == {
        "episode": layout.EPISODE,
        "name": layout.NAME,
        "process": layout.ALIVE,
        "brief": arena_layout.BRIEF,
    }
    assert arena_links._CHUNK_MAGIC == arena_layout.CHUNK_MAGIC
