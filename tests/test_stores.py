"""Store tables and their translation, unsafe names, and opening files below a root."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tracehint.adapters.apply.applier import make_file
from tracehint.adapters.apply.root_files import open_root
from tracehint.adapters.stores.base import VOCABULARY, Store
from tracehint.adapters.stores.registry import names, open_store
from tracehint.errors import InputError, TracehintError, UsageError

HINTS = {
    "DP": "local", "Replication": "3", "ReplicationSemantics": "optimistic", "BlockSize": "65536",
    "CacheSize": "1048576", "Access": "random", "Lifetime": "temporary|mAdd", "LastReader": "mAdd",
}  # fmt: skip  # a table


@pytest.mark.parametrize("name", names())
def test_every_store_states_every_row_of_the_vocabulary(name: str) -> None:
    rows = open_store(name).capabilities()
    assert set(rows) == set(VOCABULARY)
    for row in rows.values():
        assert row.level in ("full", "approximate", "none")
        assert row.acts if row.level != "none" else row.how, "when it acts, or why it cannot"
        assert row.how or row.level == "full"


@pytest.mark.parametrize("name", names())
def test_a_hint_is_either_translated_or_named_as_a_gap(name: str) -> None:
    store = open_store(name)
    for kind in ("file", "directory"):
        for hint, value in [*HINTS.items(), ("DP", "scatter|4"), ("DP", "collocation|g")]:
            settings, gaps = store.translate({hint: value}, kind)  # type: ignore[arg-type]
            assert settings or any(gap.level == "none" for gap in gaps), (hint, kind)


def test_xattr_writes_hints_under_user() -> None:
    settings, gaps = open_store("xattr").translate(HINTS, "file")
    assert {s.key: s.value.decode() for s in settings} == {f"user.{k}": v for k, v in HINTS.items()}
    assert gaps == []


def test_prefix_replaces_the_name_space() -> None:
    settings, _ = open_store("xattr", prefix="user.wf.").translate({"DP": "local"}, "file")
    assert [s.key for s in settings] == ["user.wf.DP"]


def test_woss_names_are_bare() -> None:
    settings, gaps = open_store("woss").translate({"DP": "scatter|4", "Access": "random"}, "file")
    assert [(s.key, s.value) for s in settings] == [("DP", b"scatter|4")]
    assert [(g.hint, g.level) for g in gaps] == [("Access", "none")]


def test_a_table_computes_the_strip_of_a_scatter() -> None:
    hints = {"DP": "scatter|4", "BlockSize": "65536"}
    settings, gaps = open_store("orangefs").translate(hints, "directory")
    values = {s.key: s.value for s in settings}
    assert values["user.pvfs2.dist_params"] == b"strip_size:262144"
    assert values["user.pvfs2.layout"] == b"2"
    assert [(g.hint, g.reason) for g in gaps] == [("BlockSize", "DP=scatter decides it")]


def test_a_scatter_without_its_block_size_is_a_gap() -> None:
    settings, gaps = open_store("orangefs").translate({"DP": "scatter|4"}, "directory")
    assert settings == []
    assert gaps[0].reason == "needs BlockSize as well"


def test_a_store_that_reads_directories_only_says_so_for_files() -> None:
    settings, gaps = open_store("orangefs").translate({"DP": "local"}, "file")
    assert settings == []
    assert gaps[0].level == "none"


def _table(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_a_new_store_needs_only_a_table(tmp_path: Path) -> None:
    store = open_store(
        _table(
            tmp_path,
            'name = "mine"\nprefix = "user.mine."\n[hints.Replication]\nattribute = "copies"\n'
            'value = "n={value}"\nacts = ["any"]\n',
        )
    )
    settings, gaps = store.translate({"Replication": "4", "DP": "local"}, "file")
    assert [(s.key, s.value) for s in settings] == [("user.mine.copies", b"n=4")]
    assert [g.hint for g in gaps] == ["DP=local"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name = 3",
        'name = "x"',
        'name = "x"\nhints = 4',
        "[[[",
        "\x00",
        'name = "x"\nsurprise = 1\n[hints]',
        'name = "x"\n[hints.Unknown]',
        'name = "x"\n[hints.BlockSize]\nvalue = "{value.__class__}"',
        'name = "x"\n[hints.BlockSize]\nvalue = 3',
        'name = "x"\n[hints.BlockSize]\nlevel = "some"',
        'name = "x"\nprefix = "security."\n[hints.BlockSize]',
        'name = "x"\n[hints.BlockSize]\nattribute = "security.capability"',
        'name = "x"\n[hints.BlockSize]\nattribute = "SECURITY.capability"',
        'name = "x"\nprefix = "system."\n[hints.BlockSize]',
        'name = "x"\nprefix = "user.\\n"\n[hints.BlockSize]',
        'name = "x"\ntargets = ["device"]\n[hints.BlockSize]',
    ],
)
def test_a_wrong_table_is_refused_with_a_remedy(tmp_path: Path, text: str) -> None:
    with pytest.raises(TracehintError) as caught:
        open_store(_table(tmp_path, text))
    assert caught.value.remedy


def test_an_unknown_store_lists_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        open_store("nosuch")
    assert all(name in caught.value.remedy for name in names())


@pytest.mark.parametrize(
    "key",
    [
        "security.capability",
        "system.posix_acl_access",
        "user.other",
        "Security.selinux",
        "user.DP\n",
        "",
        "user.DP\0x",
    ],
)
def test_a_store_never_writes_other_names(key: str) -> None:
    store: Store = open_store("xattr")
    store.check_key("user.DP", allow_trusted=False)
    with pytest.raises(TracehintError):
        store.check_key(key, allow_trusted=True)


def test_trusted_wants_a_flag() -> None:
    store = open_store("xattr", prefix="trusted.")
    store.check_key("trusted.DP", allow_trusted=True)
    with pytest.raises(UsageError, match="administrator"):
        store.check_key("trusted.DP", allow_trusted=False)


@pytest.fixture(params=[True, False], ids=["openat2", "by-hand"])
def how(request: pytest.FixtureRequest) -> bool:
    """Both ways of opening below a root must reject the same names."""
    return bool(request.param)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "f").write_text("x")
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "dirlink").symlink_to(tmp_path)
    (root / "inner").symlink_to("sub")
    os.mkfifo(root / "pipe")
    return root


def test_opens_what_lies_below(data: Path, how: bool) -> None:
    with open_root(data, openat2=how) as root:
        fd = root.open(b"sub/f")
        assert os.read(fd, 1) == b"x"
        os.close(fd)
        os.close(root.open(b""))
        os.close(root.open(b"sub"))


@pytest.mark.parametrize(
    "path",
    [
        b"link",
        b"dirlink/secret",
        b"inner/f",
        b"../secret",
        b"sub/../../secret",
        b"/etc/passwd",
        b"pipe",
        b"sub/..",
        b"x\0y",
        b"a/" * 3000,
    ],
)
def test_refuses_every_way_out(data: Path, how: bool, path: bytes) -> None:
    with open_root(data, openat2=how) as root:
        with pytest.raises(OSError):
            root.open(path)
        with pytest.raises(OSError):
            make_file(root, path)
    assert sorted(p.name for p in data.parent.iterdir()) == ["data", "secret"]


def test_create_never_opens_what_is_there(data: Path, how: bool) -> None:
    with open_root(data, openat2=how) as root:
        assert make_file(root, b"sub/new") == (data / "sub/new").stat().st_ino
        with pytest.raises(FileExistsError):
            make_file(root, b"sub/new")
        with pytest.raises(OSError) as caught:
            make_file(root, b"link")
    assert caught.value.errno in (errno.EEXIST, errno.ELOOP)
    assert (data.parent / "secret").read_text() == "s"


def test_a_table_of_any_size_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than 4,194,304 bytes"):
        open_store(_table(tmp_path, "#" * (1 << 23)))


PAGE = Path(__file__).parent.parent / "docs" / "reference" / "stores.md"


def test_the_table_in_the_reference_page_is_a_table(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    example = text.partition("## A new store")[2].partition("```toml\n")[2].partition("```")[0]
    store = open_store(_table(tmp_path, example))
    settings, _ = store.translate({"DP": "scatter|2", "BlockSize": "1024"}, "file")
    assert {s.key: s.value for s in settings} == {
        "user.my.strip": b"2048",
        "user.my.order": b"round-robin",
    }
