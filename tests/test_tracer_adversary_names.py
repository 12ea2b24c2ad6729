"""Names through symbolic links that were deleted before they could be resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ebpf import record, require_ebpf
from tracehint.schemas.spool.names import resolve_path, through_links

# One short-lived link per round: on a busy machine the recorder misses some.
SCRIPT = """
import os
for i in range(150):
    os.mkdir(f"d{i}")
    with open(f"d{i}/f", "w") as f:
        f.write("x" * (i + 1))
    os.symlink(f"d{i}", f"l{i}")
    os.rename(f"l{i}/f", f"l{i}/h")
    os.unlink(f"l{i}")
    os.rename(f"d{i}", f"e{i}")
    os.rename(f"e{i}/h", f"g{i}")
    os.rmdir(f"e{i}")
"""


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (b"/w/l/f", b"/w/d/f"),
        (b"/w/l", b"/w/l"),  # the link itself
        (b"/w/far/l/f", b"/other/l/f"),
        (b"/w/chain/x/y", b"/w/d/x/y"),
        (b"/w/up/f", b"/f"),
        (b"/w/loop/f", b"/w/loop/f"),
        (b"/w/lx/f", b"/w/lx/f"),
    ],
)
def test_links_among_the_directories_are_followed(path: bytes, wanted: bytes) -> None:
    links = {
        b"/w/l": b"d", b"/w/far": b"/other", b"/w/chain": b"l", b"/w/up": b"..",
        b"/w/loop": b"loop",
    }  # fmt: skip  # a table
    assert resolve_path(path, links) == wanted


def test_only_names_that_were_not_found_and_links_that_are_there() -> None:
    ops = ["rename", "symlink", "rename", "rename", "rename", "unlink", "rename"]
    old = [b"/l/a", b"/l", b"/l/a", b"/l/b", b"/l", b"/m", b"/m/a"]
    new = [b"/l/b", b"d", b"/l/b", b"/l/c", b"/m", b"", b"/m/b"]
    through_links(ops, [0, 9, 0, 7, 8, 0, 0], old, new)
    assert (old[0], new[0]) == (b"/l/a", b"/l/b")  # the link does not exist yet
    assert (old[2], new[2]) == (b"/d/a", b"/d/b")
    assert (old[3], new[3]) == (b"/l/b", b"/l/c")  # resolved: the loader's result takes precedence
    assert (old[6], new[6]) == (b"/m/a", b"/m/b")  # the link no longer exists


@pytest.mark.ebpf
def test_every_rename_is_one_of_its_file(tmp_path: Path) -> None:
    require_ebpf()
    script = f"import os\nos.chdir({str(tmp_path)!r})\n{SCRIPT}"
    _, bundle = record(tmp_path / "run.trace", "python3", "-c", script)
    base = bytes(tmp_path) + b"/"
    names: dict[int, list[tuple[str, bytes, bytes]]] = {}
    for r in bundle.tables["names"].to_pylist():
        row = (r["op"], r["path"].removeprefix(base), (r["new_path"] or b"").removeprefix(base))
        names.setdefault(r["file"], []).append(row)
    for i in range(150):
        d, e, g = b"d%d" % i, b"e%d" % i, b"g%d" % i
        wanted = [
            ("create", d + b"/f", b""),
            ("rename", d + b"/f", d + b"/h"),
            ("rename", e + b"/h", g),
        ]
        assert wanted in names.values()
