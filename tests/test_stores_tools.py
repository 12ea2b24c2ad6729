"""Scripts, apply, verify and undo through a store's tool, simulated by a program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tests.support.hostile import HOSTILE_NAMES
from tests.support.store_tools import BLOCK, calls_of, emit, environment, places, tool, tool_store

pytestmark = pytest.mark.slow


def test_the_script_runs_the_tool_in_the_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "out").mkdir(parents=True)
    tool(tmp_path / "bin", "lfs")
    rules = [rule("out/part_{n}.bin", examples=["out/part_1.bin"], BlockSize="65536")]
    script = emit(tmp_path, "lustre", rules, "--create")
    run = ["sh", str(script), str(data)]
    env = environment(tmp_path)
    dry = subprocess.run([*run, "--dry-run"], env=env, capture_output=True, text=True)
    assert dry.returncode == 0, dry.stderr
    assert "lfs setstripe -S 65536 ." in dry.stdout
    assert not (tmp_path / "calls").exists()
    subprocess.run([*run, "--quiet"], env=env, check=True)
    options = ["-S", "65536"]
    assert calls_of(tmp_path) == [
        [str(data / "out"), "lfs", "setstripe", *options, "."],
        [str(data / "out"), "lfs", "setstripe", *options, "./part_1.bin"],
    ]
    (tmp_path / "calls").unlink()
    subprocess.run([*run, "--undo"], env=env, check=True)
    assert calls_of(tmp_path) == [[str(data / "out"), "lfs", "setstripe", "-d", "."]]


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
    tool(tmp_path / "bin", "lfs")
    rules = [rule("x", DP="local")]
    from tracehint.adapters.plan import TagPlan, Target
    from tracehint.adapters.stores.call_script import make_call_script
    from tracehint.hintgen.hints.hintfile import load

    hints = load(save(tmp_path, *rules))
    targets = [
        Target(path=os.fsencode(name), kind="directory", hints=BLOCK, rule="R1", pattern="")
        for name in made
    ]
    script = make_call_script(hints, TagPlan(targets=targets), tool_store("lustre"), inside=True)
    (tmp_path / "s.sh").write_text(script.text)
    done = subprocess.run(
        ["sh", str(tmp_path / "s.sh"), str(data)], env=environment(tmp_path), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    calls = calls_of(tmp_path)
    assert len(calls) == len(made)
    assert all(call[1:3] == ["lfs", "setstripe"] and call[-1] == "." for call in calls)
    assert not list(tmp_path.rglob("PWNED"))
    assert not any(byte < 32 and byte != 10 for byte in done.stdout), "control characters"


def test_odd_names_do_not_reach_tools_with_patterns_of_their_own(tmp_path: Path) -> None:
    rules = [rule("out/{name}", examples=["out/a.bin", "out/*", "out/a b"], Replication="3")]
    script = emit(tmp_path, "alluxio", rules, "--map", str(places(tmp_path, "alluxio")))
    tool(tmp_path / "bin", "alluxio")
    subprocess.run(["sh", str(script)], env=environment(tmp_path), check=True, cwd=tmp_path)
    assert [call[1:] for call in calls_of(tmp_path)] == [
        ["alluxio", "fs", "setReplication", "--min", "3", "/wf/out/a.bin"]
    ]


def test_a_link_on_the_way_is_refused(tmp_path: Path) -> None:
    data, secret = tmp_path / "data", tmp_path / "secret"
    data.mkdir()
    secret.mkdir()
    (data / "out").symlink_to(secret)
    tool(tmp_path / "bin", "lfs")
    rules = [rule("out/a.bin", BlockSize="65536")]
    script = emit(tmp_path, "lustre", rules, "--create")
    done = subprocess.run(
        ["sh", str(script), str(data)], env=environment(tmp_path), capture_output=True, text=True
    )
    assert not (tmp_path / "calls").exists()
    assert "does not exist" in done.stdout or done.returncode


def _apply(tmp_path: Path, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
    as_root = ["--as-root"] if verb == "apply" and os.geteuid() == 0 else []
    words = [verb, "hints.json", "--store", "lustre", "--map", "map.toml", *as_root, *more, "data"]
    return tracehint(*words, cwd=tmp_path, env=environment(tmp_path))


FAKE_LFS = """
[ "$1" = getstripe ] || { [ "$2" = -d ] && rm -f "$STATE" || printf '%s' "$4" >"$STATE"; exit; }
[ -s "$STATE" ] || { printf 'lmm_stripe_count: 1\\nlmm_stripe_size: 1048576\\n'; exit; }
printf 'lmm_stripe_count:  1\\nlmm_stripe_size:   1048576\\nlmm_pool:  node_here\\n'
"""


def test_apply_verify_and_undo_go_through_the_tool(tmp_path: Path) -> None:
    (tmp_path / "data" / "out").mkdir(parents=True)
    places(tmp_path, "lustre")
    text = (tmp_path / "map.toml").read_text().replace('"node_h"', '"node_here"')
    (tmp_path / "map.toml").write_text(text)
    save(tmp_path, rule("out/a.bin", DP="local"))
    os.environ["STATE"] = str(tmp_path / "state")
    tool(tmp_path / "bin", "lfs", FAKE_LFS)
    missing = _apply(tmp_path, "verify")
    assert missing.returncode == 1, missing.stderr
    done = _apply(tmp_path, "apply")
    assert done.returncode == 0, done.stderr
    assert "not run" in done.stderr
    assert calls_of(tmp_path)[-1][2:7] == ["setstripe", "-c", "1", "-p", "node_here"]
    assert _apply(tmp_path, "verify").returncode == 0
    back = _apply(tmp_path, "apply", "--undo")
    assert back.returncode == 0
    assert "1 setting undone" in back.stderr, back.stderr
    assert "-S" in calls_of(tmp_path)[-2] or "-S" in calls_of(tmp_path)[-1], "the former layout"
