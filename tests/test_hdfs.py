"""The HDFS table on a real HDFS: the namenode reports what the script sets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.hdfs import Hdfs, hdfs
from tests.support.hints import rule, save
from tests.support.needs import missing_for
from tests.support.patience import until
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.registry import open_store

TOOL = TRACEHINT
MIB = 1 << 20
FSCK = (
    "/f 3000000 bytes, replicated: replication=2, 1 block(s):  OK\n"
    "0. BP-1-127.0.0.1-1:blk_1073741825_1001 len=3000000 Live_repl=2  "
    "[DatanodeInfoWithStorage[n1.site:9866,DS-5e4c,DISK], "
    "DatanodeInfoWithStorage[n2.site:9866,DS-1b2a,SSD]]\n"
)


def _store() -> CommandStore:
    store = open_store("hdfs")
    assert isinstance(store, CommandStore)
    return store


def test_sequential_access_wants_no_other_media() -> None:
    settings, gaps = _store().translate({"Access": "sequential"}, "file")
    assert settings == []
    assert gaps[-1].reason == "the store has no word for sequential"
    [setting], _ = _store().translate({"Access": "random"}, "file")
    assert _store().argv(setting, "/f")[-2:] == ["-policy", "ALL_SSD"]


@pytest.mark.parametrize("name", ["/a*", "/a b", "/{x,y}", "/a;b", "/\x1b", "a\n", "/?"])
def test_a_name_that_could_be_a_pattern_is_not_asked_for(name: str) -> None:
    with pytest.raises(OSError, match="pattern"):
        _store().locate_name(name)


def test_nodes_are_read_from_what_fsck_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hdfs").write_text("#!/bin/sh\ncat <<'END'\n" + FSCK + "END\n")
    (tmp_path / "hdfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = _store().locate_name("/f")
    assert found is not None
    assert found.nodes == ("n1.site", "n2.site")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A running HDFS."""
    if missing_for(("ip", "tc")):
        pytest.skip(missing_for(("ip", "tc")))
    with hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


def _tracehint(store: Hdfs, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return store.call(*TOOL, *words, cwd=folder)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.store
def test_copies_and_media_are_what_the_namenode_reports(store: Hdfs, tmp_path: Path) -> None:
    (tmp_path / "many.bin").write_bytes(os.urandom(MIB))
    store.run("dfs", "-mkdir", "/wf")
    for name in ("many.bin", "index.db"):
        put = store.run("dfs", "-put", tmp_path / "many.bin", f"/wf/{name}")
        assert put.returncode == 0, put.stderr
    (tmp_path / "map.toml").write_text('base = "/wf"\n')
    rules = (
        rule("many.bin", producer=None, Replication="3"),
        rule("index.db", producer=None, Access="random"),
    )
    save(tmp_path, *rules)
    words = ("--store", "hdfs", "--map", "map.toml")
    where = json.loads(
        _tracehint(store, tmp_path, "locate", "many.bin", *words, "--format", "json").stdout
    )
    assert len(where["files"][0]["nodes"]) == 1
    done = _tracehint(store, tmp_path, "emit", "hints.json", *words, "-o", "s.sh")
    assert done.returncode == 0, done.stderr
    assert "not run" not in done.stderr
    ran = store.call("sh", "s.sh", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert store.run("dfs", "-stat", "%r", "/wf/many.bin").stdout.strip() == "3"
    policy = store.run("storagepolicies", "-getStoragePolicy", "-path", "/wf/index.db").stdout
    assert "BlockStoragePolicy{ALL_SSD:" in policy
    _until_copied(store, tmp_path, words)
    undone = store.call("sh", "s.sh", "--undo", cwd=tmp_path)
    assert undone.returncode == 0
    policy = store.run("storagepolicies", "-getStoragePolicy", "-path", "/wf/index.db").stdout
    assert "ALL_SSD" not in policy


def _until_copied(store: Hdfs, folder: Path, words: tuple[str, ...]) -> None:
    """Wait for the background replication, until `locate` reports the file on three nodes."""

    def there() -> bool:
        said = _tracehint(store, folder, "locate", "many.bin", *words).stdout
        return sum(node.address in said for node in store.nodes) == 3

    until(there, "three copies", every_s=1)
