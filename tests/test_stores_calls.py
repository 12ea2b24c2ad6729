"""Stores with tools: each row of their tables and the arguments it produces. No tool was run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.store_tools import BLOCK, COPIES, GROUP, LOCAL, MIB, SCATTER, places, tool_store
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.grammar import KINDS, Grid, bytes_of, check_word
from tracehint.adapters.stores.places import load_places
from tracehint.adapters.stores.registry import names, open_store
from tracehint.errors import InputError

# (store, kind, hints) -> arguments, several calls separated by ;. None: not supported
CALLS: list[tuple[str, str, Mapping[str, str], str | None]] = [
    ("lustre", "file", LOCAL, "lfs setstripe -c 1 -p node_h PATH"),
    ("lustre", "directory", GROUP, "lfs setstripe -c 1 -p g1 PATH"),
    ("lustre", "file", SCATTER, "lfs setstripe -c -1 -S 3145728 PATH"),
    ("lustre", "directory", SCATTER,
     "lfs setstripe -E 3145728 -c 1 -S 3145728 -E -1 -c -1 -S 3145728 PATH"),
    ("lustre", "directory", {"DP": "distribute|g"}, None),
    ("lustre", "file", COPIES, "lfs setstripe -N3 PATH"),
    ("lustre", "file", BLOCK, "lfs setstripe -S 131072 PATH"),
    ("lustre", "file", {"Access": "random"}, None),
    ("lustre", "directory", {"Metadata": "lyon"}, "lfs migrate -m 1 PATH"),
    ("lustre", "file", {"Metadata": "lyon"}, None),
    ("beegfs7", "directory", GROUP,
     "beegfs-ctl --setpattern --numtargets=1 --storagepoolid=7 PATH"),
    ("beegfs7", "directory", SCATTER, "beegfs-ctl --setpattern --chunksize=4194304 PATH"),
    ("beegfs7", "directory", COPIES, "beegfs-ctl --setpattern --pattern=buddymirror PATH"),
    ("beegfs7", "directory", BLOCK, "beegfs-ctl --setpattern --chunksize=131072 PATH"),
    ("beegfs7", "file", BLOCK, None),
    ("beegfs7", "directory", LOCAL, None),
    ("beegfs8", "directory", GROUP, "beegfs entry set --num-targets=1 --pool=g1 PATH"),
    ("beegfs8", "directory", SCATTER, "beegfs entry set --chunk-size=4194304 PATH"),
    ("beegfs8", "directory", COPIES, "beegfs entry set --pattern=mirrored PATH"),
    ("beegfs8", "directory", BLOCK, "beegfs entry set --chunk-size=131072 PATH"),
    ("beegfs8", "file", COPIES, None),
    ("daos", "directory", GROUP, "daos fs set-attr --path=PATH --oclass=S1"),
    ("daos", "directory", SCATTER, "daos fs set-attr --path=PATH --oclass=SX --chunk-size=3145728"),
    ("daos", "directory", COPIES, "daos fs set-attr --path=PATH --oclass=RP_3GX"),
    ("daos", "directory", SCATTER | COPIES,
     "daos fs set-attr --path=PATH --oclass=SX --chunk-size=3145728"),
    ("daos", "directory", BLOCK, "daos fs set-attr --path=PATH --chunk-size=100000"),
    ("daos", "file", BLOCK, None),
    ("eos", "directory", GROUP, "eos attr set user.forced.group=7 PATH"),
    ("eos", "directory", COPIES,
     "eos attr set user.forced.layout=replica PATH ; eos attr set user.forced.nstripes=3 PATH"),
    ("eos", "directory", BLOCK, None),
    ("alluxio", "file", COPIES, "alluxio fs setReplication --min 3 PATH"),
    ("alluxio", "file", {"CacheSize": "1048576"}, "alluxio fs pin PATH MEM"),
    ("alluxio", "directory", COPIES, None),
    ("dcache", "directory", GROUP, "chimera writetag PATH sGroup g1"),
    ("dcache", "directory", COPIES, None),
    ("confuga", "file", COPIES, "chirp head:1094 setrep PATH 3"),
    ("confuga", "file", LOCAL, None),
    ("hdfs", "file", COPIES, "hdfs dfs -setrep 3 PATH"),
    ("hdfs", "file", {"Access": "random"},
     "hdfs storagepolicies -setStoragePolicy -path PATH -policy ALL_SSD"),
    ("hdfs", "directory", {"Access": "random"},
     "hdfs storagepolicies -setStoragePolicy -path PATH -policy ALL_SSD"),
    ("hdfs", "directory", COPIES, None),
    ("hdfs", "file", BLOCK, None),
    ("xrootd", "file", GROUP, "xrdfs head:1094 prepare -c -s PATH"),
    ("xrootd", "file", LOCAL, None),
]  # fmt: skip  # a table


def _command_stores() -> list[str]:
    return [name for name in names() if isinstance(open_store(name), CommandStore)]


@pytest.mark.parametrize(("name", "kind", "hints", "wanted"), CALLS)
def test_a_row_is_said_by_these_arguments(
    tmp_path: Path, name: str, kind: str, hints: Mapping[str, str], wanted: str | None
) -> None:
    store = tool_store(name, places(tmp_path, name))
    settings, gaps = store.translate(hints, kind)  # type: ignore[arg-type]
    if wanted is None:
        assert settings == []
        assert gaps[0].level == "none"
        return
    said = [store.argv(setting, "PATH") for setting in settings]
    assert said == [call.split() for call in wanted.split(" ; ")]


def test_every_row_that_a_store_says_stands_above() -> None:
    """A new table or row needs its arguments in this list."""
    for name in _command_stores():
        rows = {k for k, row in open_store(name).capabilities().items() if row.level != "none"}
        seen = {
            f"DP={v.partition('|')[0]}" if k == "DP" else k
            for store, _, hints, wanted in CALLS
            if store == name and wanted
            for k, v in hints.items()
        }
        assert rows <= seen, (name, rows - seen)


@pytest.mark.parametrize("name", names())
def test_a_store_says_what_the_table_of_stores_needs(name: str) -> None:
    about = open_store(name).about
    assert all([about.who, about.read_back, about.undo, about.cost, about.source, about.tried])
    assert (about.state == "works") == (about.tried != "not run") or about.state == "nothing"
    assert (about.state == "nothing") == bool(about.instead)
    levels = {row.level for row in open_store(name).capabilities().values()}
    assert (levels == {"none"}) == (about.state == "nothing")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value", ["", "-rf", "$(id)", "a b", "a;b", "`x`", "a\nb", "a'b", 'a"b', "--x", "x" * 300, "é"]
)
def test_no_other_value_passes_the_grammar(kind: str, value: str) -> None:
    with pytest.raises(InputError):
        check_word(kind, "w", value)


@pytest.mark.parametrize(
    "text",
    [
        'server = "-o x"', 'server = "a b"', 'server = "h:1;id"', 'base = "wf"', 'base = "/a/../b"',
        'base = "/$(id)"', "small = 1000", "small = -65536", 'small = "1M"', "server = 3",
    ],
)  # fmt: skip  # a table
def test_a_map_that_names_something_odd_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(InputError):
        load_places(tmp_path / "m.toml")


def test_sizes_lie_on_the_grid_of_the_store() -> None:
    assert Grid(multiple=65536).fit(1) == 65536
    assert Grid(power2=True, least=65536).fit(65537) == 131072
    assert Grid(most=9).fit(400) == 9
    assert [bytes_of(t) for t in ("512K", "1M", "1.0MiB", "1.5MiB", "7", "x", "-1")] == [
        524288,
        MIB,
        MIB,
        MIB * 3 // 2,
        7,
        None,
        None,
    ]
