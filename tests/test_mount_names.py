"""Translation of names inside containers to names outside, by mount tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracehint.schemas.spool.arena_links import RealPaths
from tracehint.schemas.spool.mount_names import MAX_TABLE, Mounts, NamesOutside

OUTSIDE = rb"""
1 1 8:1 / / rw - ext4 /dev/a rw
2 1 8:2 / /home rw - ext4 /dev/b rw
3 2 8:3 /part /home/cov\040ered rw - ext4 /dev/c rw
4 1 8:1 /srv/x /srv/again rw - ext4 /dev/a rw
no line of a table
"""
INSIDE = b"""
20 9 0:50 / / rw - overlay overlay rw
21 20 8:1 /usr /usr rw - ext4 /dev/a rw
22 20 8:2 /me/work /data rw - ext4 /dev/b rw
23 22 0:51 / /data/tmp rw - tmpfs tmpfs rw
24 23 8:3 /part/y /data/tmp rw - ext4 /dev/c rw
25 20 8:2 /me /data/tmp/below rw - ext4 /dev/b rw
26 20 8:3 / /all rw - ext4 /dev/c rw
27 20 8:1 /home /under rw - ext4 /dev/a rw
"""


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("/usr/bin/sh", "/usr/bin/sh"),
        ("/data", "/home/me/work"),
        ("/data/x/y", "/home/me/work/x/y"),
        ("/data/./x/../y", "/home/me/work/y"),
        ("/database", "/database"),
        ("/opt/tool", "/opt/tool"),  # on the container's own file system
        ("/data/tmp/z", "/home/cov ered/y/z"),  # the most recent mount there
        ("/data/tmp/below/z", "/home/cov ered/y/below/z"),  # that mount is below /data/tmp
        ("/all/part/q", "/home/cov ered/q"),
        ("/all/other", "/all/other"),  # not visible outside
        ("/under/u", "/under/u"),  # covered outside
    ],
)
def test_names_outside(inside: str, outside: str) -> None:
    names = NamesOutside(OUTSIDE)
    base = names.base(b"\0" + INSIDE)
    assert names.knows(base)
    assert names.both(base + inside.encode()) == (
        outside.encode(),
        os.path.normpath(inside).encode(),
    )
    assert names.both(inside.encode()) == (inside.encode(), inside.encode())


@pytest.mark.parametrize(
    "table", [b"", b"5 4 0:9 / /proc rw - proc proc rw\n", b"\xff" * 100, INSIDE.ljust(MAX_TABLE)]
)
def test_what_names_are_not_known_by(table: bytes) -> None:
    names = NamesOutside(OUTSIDE)
    base = names.base(b"\0" + table)
    assert not names.knows(base)
    assert names.both(base + b"/data/x") == (b"/data/x",) * 2


def test_mounts_in_a_ring() -> None:
    ring = Mounts(b"1 9 0:1 / / rw\n2 3 0:2 / / rw\n3 2 0:3 / / rw\n4 1 0:4 / /a rw\n")
    assert ring.place(b"/a/b") == (b"0:4", b"/b")


def test_an_open_file_from_outside_keeps_its_name(tmp_path: Path) -> None:
    """A descriptor inherited by a container keeps the outside name."""
    (tmp_path / "work").mkdir()
    file = tmp_path / "file"
    file.touch()
    table = "1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 {} {} rw - ext4 a rw\n"
    links = RealPaths(here=True, mounts=b"1 0 8:1 / / rw - ext4 a rw\n")
    folder = os.fsencode(tmp_path)
    base = links.outside.base(b"\0" + table.format(tmp_path / "work", tmp_path).encode())
    assert links.resolve_open(base + folder + b"/file", file.stat().st_ino) == folder + b"/file"
    assert links.resolve_open(base + folder + b"/file", 1) == folder + b"/work/file"
    found = links.links_of([(base + folder + b"/file", file.stat().st_ino)], [])
    elsewhere = RealPaths(here=False, resolved=found, mounts=b"1 0 8:1 / / rw - ext4 a rw\n")
    base = elsewhere.outside.base(b"\0" + table.format(tmp_path / "work", tmp_path).encode())
    assert elsewhere.resolve_open(base + folder + b"/file", file.stat().st_ino) == folder + b"/file"
    assert elsewhere.resolve_directories(base + folder + b"/x") == folder + b"/work/x"
