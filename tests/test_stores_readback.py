"""Stores with tools: the calls that query them, the parsing of answers, and the calls that undo.

The answers are output formats from the tools' sources (BeeGFS 7 and 8, DAOS, EOS, Alluxio, XRootD:
not run here) or were printed here (HDFS).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.support.store_tools import places, tool_store
from tracehint.adapters.stores.base import Setting
from tracehint.adapters.stores.commands import AskPlace, CommandStore
from tracehint.adapters.stores.registry import names, open_store

BEEGFS = "EntryID: 0-5D36\nMetadata node: m1 [ID: 1]\nStripe pattern details:\n"
TARGETS = "+ Number of storage targets: desired: 4\n"
DAOS = '{"response": {%s}, "error": null, "status": 0}'
ALLUXIO = "FileInfo{fileId=33554431, replicationMax=-1, replicationMin=3, length=5}"
HDFS = "The storage policy of /f:\nBlockStoragePolicy{ALL_SSD:12, storageTypes=[SSD]}\n"

# (store, command) -> query, answer, values parsed from it
READS: list[tuple[str, str, str, str, Mapping[str, str]]] = [
    ("beegfs7", "pattern", "beegfs-ctl --getentryinfo P",
     BEEGFS + "+ Type: RAID0\n+ Chunksize: 512K\n" + TARGETS + "+ Storage Pool: 7 (fast)\n",
     {"chunk": "524288", "targets": "4", "pattern": "raid0", "pool": "7"}),
    ("beegfs7", "pattern", "beegfs-ctl --getentryinfo P",
     BEEGFS + "+ Type: Buddy Mirror\n+ Chunksize: 1M\n" + TARGETS,
     {"chunk": "1048576", "targets": "4", "pattern": "buddymirror"}),
    ("beegfs8", "pattern", "beegfs entry info --retro --verbose P",
     BEEGFS + "+ Type: RAID0\n+ Chunksize: 512K\n" + TARGETS + "+ Storage Pool: 2  (fast)\n",
     {"chunk": "524288", "targets": "4", "pattern": "raid0", "pool": "fast"}),
    ("beegfs8", "pattern", "beegfs entry info --retro --verbose P",
     BEEGFS + "+ Type: Buddy Mirror\n", {"pattern": "mirrored"}),
    ("beegfs8", "pattern", "beegfs entry info --retro --verbose P",
     BEEGFS + "+ Type: buddy-mirror\n", {"pattern": "mirrored"}),
    ("daos", "attr", "daos -j fs get-attr --path=P",
     DAOS % '"oclass": "S1", "chunk_size": 1048576', {"oclass": "S1", "chunk": "1048576"}),
    ("daos", "attr", "daos -j fs get-attr --path=P",
     DAOS % ('"object": {"oid": "1.2", "oclass": "OC_UNKNOWN"}, "directory": {"dir_oclass": "S1", '
             '"file_oclass": "RP_3GX", "chunk_size": 4194304}'),
     {"oclass": "RP_3GX", "chunk": "4194304"}),
    ("eos", "layout", "eos attr ls P", 'user.forced.layout="replica"\n', {"layout": "replica"}),
    ("eos", "stripes", "eos attr ls P", 'user.forced.nstripes="3"\n', {"copies": "3"}),
    ("eos", "group", "eos attr ls P", 'sys.x="1"\nuser.forced.group="7"\n', {"group": "7"}),
    ("alluxio", "copies", "alluxio fs stat P", ALLUXIO, {"copies": "3"}),
    ("alluxio", "pin", "", "", {}),
    ("dcache", "group", "chimera readtag P sGroup", "g1\n", {"group": "g1"}),
    ("hdfs", "copies", "hdfs dfs -stat %r P", "3\n", {"copies": "3"}),
    ("hdfs", "policy", "hdfs storagepolicies -getStoragePolicy -path P", HDFS,
     {"policy": "ALL_SSD"}),
    ("confuga", "copies", "", "", {}),
    ("xrootd", "prepare", "", "", {}),
    ("lustre", "metadata", "lfs getdirstripe -m P", "1\n", {"mdt_index": "1"}),
    ("lustre", "layout", "lfs getstripe -y -d P",
     "lmm_stripe_count:  1\nlmm_stripe_size:   1048576\n", {"count": "1", "size": "1048576"}),
]  # fmt: skip  # a table

# (store, command) -> the call that undoes it; "": there is none
UNSETS = {
    ("beegfs7", "pattern"): "", ("beegfs8", "pattern"): "",
    ("daos", "attr"): "daos fs reset-attr --path=P",
    ("eos", "layout"): "eos attr rm user.forced.layout P",
    ("eos", "stripes"): "eos attr rm user.forced.nstripes P",
    ("eos", "group"): "eos attr rm user.forced.group P",
    ("alluxio", "copies"): "alluxio fs setReplication --min 0 --max -1 P",
    ("alluxio", "pin"): "alluxio fs unpin P",
    ("dcache", "group"): "chimera rmtag P sGroup",
    ("hdfs", "copies"): "",
    ("hdfs", "policy"): "hdfs storagepolicies -unsetStoragePolicy -path P",
    ("confuga", "copies"): "chirp head:1094 setrep P 1",
    ("xrootd", "prepare"): "",
    ("lustre", "layout"): "lfs setstripe -d P", ("lustre", "metadata"): "",
}  # fmt: skip  # a table

# store -> the call that locates a file, an answer, the nodes in it
PLACES = {
    "hdfs": ("hdfs fsck P -files -blocks -locations",
             "[DatanodeInfoWithStorage[n1.site:9866,DS-5e4c,DISK]]", ["n1.site"]),
    "alluxio": ("alluxio fs location P",
                "/f with file id 33554431 is on nodes: \nn1.site\nn2\n", ["n1.site", "n2"]),
    "xrootd": ("xrdfs head:1094 locate -d P",
               "[::10.0.0.1]:1094 Server ReadWrite\nn2.site:1094 Server Read\n",
               ["::10.0.0.1", "n2.site"]),
}  # fmt: skip  # a table


def _stores(tmp_path: Path) -> dict[str, CommandStore]:
    found = [name for name in names() if isinstance(open_store(name), CommandStore)]
    return {name: tool_store(name, places(tmp_path, name)) for name in found}


def test_every_command_is_asked_and_read_as_its_tool_prints(tmp_path: Path) -> None:
    stores = _stores(tmp_path)
    for name, key, call, answer, words in READS:
        store, command = stores[name], stores[name].commands[key]
        assert store._fill_words(command.get, "P", []) == call.split(), (name, key)
        assert store.words_in(command, answer) == words, (name, key)
        assert store.words_in(command, "no such file\n" * 3) == {}, (name, key)
    every = {(name, key) for name, store in stores.items() for key in store.commands}
    assert {(name, key) for name, key, *_ in READS} == every == UNSETS.keys()


def test_every_word_that_can_be_read_stands_above(tmp_path: Path) -> None:
    seen = {(name, key, word) for name, key, *_, words in READS for word in words}
    for name, store in _stores(tmp_path).items():
        for key, command in store.commands.items():
            readable = {word for word, how in command.words.items() if how.read}
            assert readable <= {w for n, k, w in seen if (n, k) == (name, key)}, (name, key)
            means = {m for how in command.words.values() for m in how.means}
            texts = "".join(answer for n, k, _, answer, _ in READS if (n, k) == (name, key))
            assert all(text in texts for text in means), (name, means)


def test_what_takes_back_is_this_call(tmp_path: Path) -> None:
    stores = _stores(tmp_path)
    for (name, key), call in UNSETS.items():
        setting = Setting(key=f"{name}:{key}", value=b"", hint="")
        assert stores[name].unset_argv(setting, "P") == call.split(), (name, key)


def _answered(said: list[list[str]], answer: str, argv: list[str], **_: object) -> str:
    said.append(argv)
    return answer


def test_every_call_that_locates_and_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = _stores(tmp_path)
    asks = {name: store.ask_place for name, store in stores.items() if store.ask_place}
    assert asks.keys() == PLACES.keys()
    for name, (call, answer, nodes) in PLACES.items():
        said: list[list[str]] = []

        tool = partial(_answered, said, answer)
        monkeypatch.setattr("tracehint.adapters.stores.commands.run_tool", tool)
        found = stores[name].locate_name("P")
        assert found is not None
        assert sorted(found.nodes) == sorted(nodes), name
        assert said == [call.replace("P", "/wf/P").split()]
        assert isinstance(asks[name], AskPlace)
