"""Stores with tools: each row of their tables as the argument vector that says it, and the script.

The stores were never run; their tools are stood in for by programs that write down their arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.hints import rule, save
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.stores.base import VOCABULARY, Setting
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.getstripe import layout_words
from tracehint.adapters.stores.grammar import KINDS, Grid, bytes_of, check_word
from tracehint.adapters.stores.lustre import lustre
from tracehint.adapters.stores.places import Places, load_places
from tracehint.adapters.stores.registry import TABLES, names, open_store
from tracehint.errors import InputError, TracehintError, UsageError
from tracehint.hintgen.hints.model import Rule

TOOL = [sys.executable, "-m", "tracehint"]
MIB = 1 << 20
MAP = (
    'local = "node_{host}"\ngroups = ["g1"]\nserver = "head:1094"\nbase = "/wf"\n'
    'copies = { 2 = "two" }\nreads_spread = true\nsites = { lyon = "1" }\n'
)
LOCAL, GROUP = {"DP": "local"}, {"DP": "collocation|sum"}
SCATTER = {"DP": "scatter|3", "BlockSize": str(MIB)}
COPIES, BLOCK = {"Replication": "3"}, {"BlockSize": "100000"}

# (store, kind, hints) -> arguments; None: the store cannot say it
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
    ("daos", "directory", BLOCK, "daos fs set-attr --path=PATH --chunk-size=100000"),
    ("daos", "file", BLOCK, None),
    ("eos", "directory", GROUP, "eos attr set user.forced.group=7 PATH"),
    ("eos", "directory", COPIES, "eos attr set user.forced.layout=replica PATH"),
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
    ("hdfs", "file", BLOCK, None),
    ("xrootd", "file", GROUP, "xrdfs head:1094 prepare -c -s PATH"),
    ("xrootd", "file", LOCAL, None),
]  # fmt: skip  # a table


def _places(tmp_path: Path, store: str, extra: str = "") -> Path:
    path = tmp_path / "map.toml"
    text = MAP.replace("g1", "7") if store in ("beegfs7", "eos") else MAP
    path.write_text(text.replace("{host}", "h") + extra)
    return path


def _store(name: str, places: Path | None = None) -> CommandStore:
    store = open_store(name, places=places)
    assert isinstance(store, CommandStore)
    return store


def _command_stores() -> list[str]:
    return [name for name in names() if isinstance(open_store(name), CommandStore)]


@pytest.mark.parametrize(("name", "kind", "hints", "wanted"), CALLS)
def test_a_row_is_said_by_these_arguments(
    tmp_path: Path, name: str, kind: str, hints: Mapping[str, str], wanted: str | None
) -> None:
    store = _store(name, _places(tmp_path, name))
    settings, gaps = store.translate(hints, kind)  # type: ignore[arg-type]
    if wanted is None:
        assert settings == []
        assert gaps[0].level == "none"
        return
    assert store.argv(settings[0], "PATH") == wanted.split()


def test_every_row_that_a_store_says_stands_above() -> None:
    """A new table, or a new row, is not done before its arguments are written down here."""
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


def test_small_files_lie_on_the_metadata_server_where_the_map_says_so(tmp_path: Path) -> None:
    store = _store("lustre", _places(tmp_path, "lustre", "small = 1048576\n"))
    [setting], _ = store.translate(SCATTER, "directory")
    wanted = "-E 1048576 -L mdt -E 3145728 -c 1 -S 3145728 -E -1 -c -1 -S 3145728 P"
    wanted = f"lfs setstripe {wanted}"
    assert store.argv(setting, "P") == wanted.split()
    [setting], _ = store.translate(BLOCK, "directory")
    wanted = "lfs setstripe -E 1048576 -L mdt -E -1 -S 131072 P"
    assert store.argv(setting, "P") == wanted.split()
    [setting], _ = store.translate(COPIES, "directory")
    assert "mdt" not in store.argv(setting, "P"), "mirrors have no part there"
    [setting], _ = store.translate(BLOCK, "file")
    assert "mdt" not in store.argv(setting, "P")


PLAIN = """\
lmm_stripe_count:  4
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 2
lmm_pool:          flash
lmm_objects:
      - l_ost_idx: 2
        l_fid:     0x100020000:0x2:0x0
      - l_ost_idx: 0
        l_fid:     0x100000000:0x2:0x0
"""
COMPOSITE = """\
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   3
  component0:
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
    sub_layout:
      lmm_stripe_count:  0
      lmm_stripe_size:   1048576
      lmm_pattern:       mdt
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
  component1:
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   16777216
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
  component2:
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 16777216
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  -1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
"""
MIRRORED = """\
  lcm_layout_gen:    4
  lcm_mirror_count:  2
  lcm_entry_count:   2
  component0:
    lcme_id:             65537
    lcme_mirror_id:      1
    lcme_flags:          init
    lcme_extent.e_start: 0
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_objects:
      - l_ost_idx: 0
        l_fid:     0x100000000:0x3:0x0
  component1:
    lcme_id:             131074
    lcme_mirror_id:      2
    lcme_flags:          init,stale
    lcme_extent.e_start: 0
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  2
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
"""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PLAIN, {"count": "4", "size": "1048576", "pool": "flash"}),
        (COMPOSITE, {"count": "-1", "size": "4194304", "mdt": "1048576", "narrow": "16777216"}),
        (MIRRORED, {"count": "1", "size": "4194304", "mirrors": "2"}),
        ("", {}),
        ("lmm_stripe_count: $(id)\nlmm_stripe_size: -3\nlmm_pool: a b\n", {}),
        ("lmm_pool: " + "x" * 100, {}),
        ("\x00\xff: : :\n" * 1000, {}),
    ],
)
def test_a_layout_is_read_from_what_getstripe_prints(answer: str, words: dict[str, str]) -> None:
    assert layout_words(answer) == words


def _tool(folder: Path, name: str, body: str = "") -> None:
    """A program that appends its arguments to calls, a NUL after each and two after the last."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    text = '#!/bin/sh\n{ printf "%s\\0" "$PWD" "${0##*/}" "$@"; printf "\\0"; } >>"$CALLS"\n'
    path.write_text(text + body + "\n")
    path.chmod(0o755)


def _environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
    }


def _calls(tmp_path: Path) -> list[list[str]]:
    """Arguments of each call; the first is the directory in which it was made, then the program."""
    text = (tmp_path / "calls").read_bytes().decode("utf-8", "surrogateescape")
    return [call.split("\0") for call in text.split("\0\0") if call]


def _emit(tmp_path: Path, store: str, rules: list[Rule], *more: str) -> Path:
    hints = save(tmp_path, *rules)
    script = tmp_path / "hints.sh"
    done = subprocess.run(
        [*TOOL, "emit", str(hints), "--store", store, "-o", str(script), "--force", *more],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not run" in done.stderr
    assert "not run" in script.read_text().partition("\n\n")[0]
    return script


def test_the_script_runs_the_tool_in_the_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "out").mkdir(parents=True)
    _tool(tmp_path / "bin", "lfs")
    rules = [rule("out/part_{n}.bin", examples=["out/part_1.bin"], BlockSize="65536")]
    script = _emit(tmp_path, "lustre", rules, "--create")
    run = ["sh", str(script), str(data)]
    env = _environment(tmp_path)
    dry = subprocess.run([*run, "--dry-run"], env=env, capture_output=True, text=True)
    assert dry.returncode == 0, dry.stderr
    assert "lfs setstripe -S 65536 ." in dry.stdout
    assert not (tmp_path / "calls").exists()
    subprocess.run([*run, "--quiet"], env=env, check=True)
    options = ["-S", "65536"]
    assert _calls(tmp_path) == [
        [str(data / "out"), "lfs", "setstripe", *options, "."],
        [str(data / "out"), "lfs", "setstripe", *options, "./part_1.bin"],
    ]
    (tmp_path / "calls").unlink()
    subprocess.run([*run, "--undo"], env=env, check=True)
    assert _calls(tmp_path) == [[str(data / "out"), "lfs", "setstripe", "-d", "."]]


def test_no_name_becomes_shell_text_or_an_option(tmp_path: Path) -> None:
    """Every hostile name reaches the tool as one argument that begins with ./, or not at all."""
    data = tmp_path / "data"
    data.mkdir()
    made = []
    for name in HOSTILE_NAMES:
        try:
            (data / os.fsdecode(name)).mkdir()
        except (OSError, ValueError):
            continue
        (data / os.fsdecode(name) / "x").write_bytes(b"1")
        made.append(os.fsdecode(name))
    _tool(tmp_path / "bin", "lfs")
    rules = [rule("x", DP="local")]
    from tracehint.adapters.plan import Plan, Target
    from tracehint.adapters.stores.call_script import make_call_script
    from tracehint.hintgen.hints.hintfile import load

    hints = load(save(tmp_path, *rules))
    targets = [
        Target(path=os.fsencode(name), kind="directory", hints=BLOCK, rule="R1", pattern="")
        for name in made
    ]
    script = make_call_script(hints, Plan(targets=targets), _store("lustre"), inside=True)
    (tmp_path / "s.sh").write_text(script.text)
    done = subprocess.run(
        ["sh", str(tmp_path / "s.sh"), str(data)], env=_environment(tmp_path), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    calls = _calls(tmp_path)
    assert len(calls) == len(made)
    assert all(call[1:3] == ["lfs", "setstripe"] and call[-1] == "." for call in calls)
    assert not list(tmp_path.rglob("PWNED"))
    assert not any(byte < 32 and byte != 10 for byte in done.stdout), "control characters"


def test_odd_names_do_not_reach_tools_with_patterns_of_their_own(tmp_path: Path) -> None:
    rules = [rule("out/{name}", examples=["out/a.bin", "out/*", "out/a b"], Replication="3")]
    script = _emit(tmp_path, "alluxio", rules, "--map", str(_places(tmp_path, "alluxio")))
    _tool(tmp_path / "bin", "alluxio")
    subprocess.run(["sh", str(script)], env=_environment(tmp_path), check=True, cwd=tmp_path)
    assert [call[1:] for call in _calls(tmp_path)] == [
        ["alluxio", "fs", "setReplication", "--min", "3", "/wf/out/a.bin"]
    ]


def test_a_link_on_the_way_is_refused(tmp_path: Path) -> None:
    data, secret = tmp_path / "data", tmp_path / "secret"
    data.mkdir()
    secret.mkdir()
    (data / "out").symlink_to(secret)
    _tool(tmp_path / "bin", "lfs")
    rules = [rule("out/a.bin", BlockSize="65536")]
    script = _emit(tmp_path, "lustre", rules, "--create")
    done = subprocess.run(
        ["sh", str(script), str(data)], env=_environment(tmp_path), capture_output=True, text=True
    )
    assert not (tmp_path / "calls").exists()
    assert "not there" in done.stdout or done.returncode


def _apply(tmp_path: Path, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
    as_root = ["--as-root"] if verb == "apply" and os.geteuid() == 0 else []
    words = [verb, "hints.json", "--store", "lustre", "--map", "map.toml", *as_root, *more, "data"]
    return subprocess.run(
        [*TOOL, *words], cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True
    )


FAKE_LFS = """
[ "$1" = getstripe ] || { [ "$2" = -d ] && rm -f "$STATE" || printf '%s' "$4" >"$STATE"; exit; }
[ -s "$STATE" ] || { printf 'lmm_stripe_count: 1\\nlmm_stripe_size: 1048576\\n'; exit; }
printf 'lmm_stripe_count:  1\\nlmm_stripe_size:   1048576\\nlmm_pool:  node_here\\n'
"""


def test_apply_verify_and_undo_go_through_the_tool(tmp_path: Path) -> None:
    (tmp_path / "data" / "out").mkdir(parents=True)
    _places(tmp_path, "lustre")
    text = (tmp_path / "map.toml").read_text().replace('"node_h"', '"node_here"')
    (tmp_path / "map.toml").write_text(text)
    save(tmp_path, rule("out/a.bin", DP="local"))
    os.environ["STATE"] = str(tmp_path / "state")
    _tool(tmp_path / "bin", "lfs", FAKE_LFS)
    missing = _apply(tmp_path, "verify")
    assert missing.returncode == 1, missing.stderr
    done = _apply(tmp_path, "apply")
    assert done.returncode == 0, done.stderr
    assert "not run" in done.stderr
    assert _calls(tmp_path)[-1][2:7] == ["setstripe", "-c", "1", "-p", "node_here"]
    assert _apply(tmp_path, "verify").returncode == 0
    back = _apply(tmp_path, "apply", "--undo")
    assert back.returncode == 0
    assert "1 settings taken back" in back.stderr, back.stderr
    assert "-S" in _calls(tmp_path)[-2] or "-S" in _calls(tmp_path)[-1], "the former layout"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value", ["", "-rf", "$(id)", "a b", "a;b", "`x`", "a\nb", "a'b", 'a"b', "--x", "x" * 300, "é"]
)
def test_no_other_value_passes_the_grammar(kind: str, value: str) -> None:
    with pytest.raises(InputError):
        check_word(kind, "w", value)


def test_what_a_journal_says_is_checked_like_a_hint() -> None:
    store = lustre(Places())
    for value in (
        b"pool=$(id)",
        b"x=1",
        b"count=1 count=2",
        b"count",
        b"",
        b"size=1\n",
        b"pool=-x",
    ):
        with pytest.raises(TracehintError):
            store.argv(Setting(key="lustre:layout", value=value, hint=""), "P")
    with pytest.raises(UsageError):
        store.check_key("user.DP", allow_trusted=True)


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
    assert [bytes_of(t) for t in ("512K", "1M", "1.0MiB", "7", "x", "-1")] == [
        524288, MIB, MIB, 7, None, None,
    ]  # fmt: skip


TWENTIETH = """
name = "twentieth"
title = "the twentieth store"
[about]
who = "owner"
read_back = "`mytool get`"
undo = "`mytool clear`"
cost = "one program a directory"
source = "mytool(1)"
[commands.place]
set = ["mytool", "set", "{options}", "{path}"]
unset = ["mytool", "clear", "{path}"]
[commands.place.words]
copies = { kind = "count", option = ["--copies={}"] }
[hints.Replication]
attribute = "copies"
acts = ["any"]
"""


def test_a_further_store_is_one_file(tmp_path: Path) -> None:
    """A table in the folder of tables is a store of the program: no other file knows of it."""
    for table in TABLES.glob("*.toml"):
        (tmp_path / table.name).write_bytes(table.read_bytes())
    before = names(tmp_path)
    (tmp_path / "twentieth.toml").write_text(TWENTIETH)
    assert set(names(tmp_path)) - set(before) == {"twentieth"}
    store = open_store("twentieth", tables=tmp_path)
    assert isinstance(store, CommandStore)
    [setting], _ = store.translate(COPIES, "file")
    assert store.argv(setting, "P") == ["mytool", "set", "--copies=3", "P"]
    assert set(store.capabilities()) == set(VOCABULARY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["mytool", "set"', '["/bin/sh", "-c"'),
        ('["mytool", "set"', '["../mytool", "set"'),
        ('"{options}", "{path}"]\nunset', '"{path}"]\nunset'),
        ('kind = "count"', 'kind = ".*"'),
        ('kind = "count"', "kind = 3"),
        ('option = ["--copies={}"]', 'option = "--copies={}"'),
        ('option = ["--copies={}"]', 'option = ["x"], read = "("'),
        ('option = ["--copies={}"]', 'option = ["x"], read = "x"'),
        ('attribute = "copies"', 'attribute = "other"'),
        ('who = "owner"', "who = 3"),
        ('who = "owner"', 'state = "perfect"'),
        ("[about]", "[fields]\nx = { of = 3 }\n[about]"),
        ("[about]", 'mounted = "no"\n[about]'),
    ],
)
def test_a_wrong_table_of_commands_is_refused(tmp_path: Path, old: str, new: str) -> None:
    assert old in TWENTIETH
    (tmp_path / "t.toml").write_text(TWENTIETH.replace(old, new, 1))
    with pytest.raises(TracehintError) as caught:
        open_store(str(tmp_path / "t.toml"))
    assert caught.value.remedy


def test_what_takes_nothing_says_what_helps_there(tmp_path: Path) -> None:
    save(tmp_path, rule("out/a.bin", DP="local"))
    done = subprocess.run(
        [*TOOL, "emit", "hints.json", "--store", "nfs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "What helps there: staging into node-local scratch" in done.stderr
    assert json.loads((tmp_path / "hints.json").read_text())


@pytest.mark.parametrize("name", ["lustre", "nfs", "moosefs"])
def test_doctor_tells_what_a_store_takes(name: str) -> None:
    done = subprocess.run(
        [*TOOL, "doctor", "--store", name, "--format", "json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    [record] = json.loads(done.stdout)["stores"]
    about = open_store(name).about
    assert record["state"] == about.state
    assert record["tried"] == about.tried
    assert record["instead"] == about.instead
    assert set(record["hints"]) == set(VOCABULARY)


def test_doctor_tells_of_every_store() -> None:
    done = subprocess.run([*TOOL, "doctor", "--store", "all"], capture_output=True, text=True)
    assert done.returncode == 0
    assert all(f"{name}: " in done.stdout for name in names())
    assert "what helps there: staging into node-local scratch" in done.stdout


def test_the_example_of_a_tool_in_the_reference_page_is_a_table(tmp_path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "reference" / "stores.md"
    text = page.read_text(encoding="utf-8").partition("## A new store that has a tool")[2]
    (tmp_path / "t.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
    store = _store(str(tmp_path / "t.toml"))
    [setting], _ = store.translate(BLOCK, "directory")
    assert store.argv(setting, "P") == ["mytool", "set", "--chunk=131072", "P"]
