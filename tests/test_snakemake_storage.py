"""Snakemake with the storage plugin fs, run for real: which inputs are linked instead of copied."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hints import rule
from tests.support.patience import PATIENCE_S
from tests.support.plans import planned, save_plan
from tracehint.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.engine]

SNAKEFILE = """
rule all:
    input: "all.txt"
rule cut:
    input: "in/{n}.bin", "db.bin"
    output: "cut_{n}.bin"
    shell: "cat {input} > {output}"
rule join:
    input: expand("cut_{n}.bin", n=range(4))
    output: "all.txt"
    shell: "cksum {input} > {output}"
"""
RULES = (
    rule(
        "in/{n}.bin",
        producer=None,
        consumers=("cut",),
        pattern="stage_in",
        examples=("in/0.bin",),
        Access="sequential",
    ),
    rule("db.bin", producer=None, consumers=("cut",), examples=("db.bin",), Replication="3"),
)
INPUTS = 4
RSYNC = """#!/bin/sh
for word; do source=$last last=$word; done
echo "$source" >>"$LOG"
exec "{}" "$@"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The workflow, and a wrapper of rsync that logs its copies."""
    if importlib.util.find_spec("snakemake_storage_plugin_fs") is None:
        pytest.skip("snakemake-storage-plugin-fs is not installed")
    rsync = shutil.which("rsync")
    if rsync is None:
        pytest.skip("rsync is not installed")
    (tmp_path / "in").mkdir()
    for i in range(INPUTS):
        (tmp_path / "in" / f"{i}.bin").write_bytes(os.urandom(50_000))
    (tmp_path / "db.bin").write_bytes(os.urandom(90_000))
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rsync").write_text(RSYNC.format(rsync))
    (tmp_path / "bin" / "rsync").chmod(0o755)
    hints = save_plan(tmp_path, planned({"cut_1.bin": 1}, rules=RULES))
    command = ["emit", str(hints), "--workflow-engine", "snakemake", str(tmp_path / "Snakefile")]
    assert main([*command, "-o", str(tmp_path / "hinted.smk")]) == 0
    return tmp_path


def _copied(folder: Path, source: str, *more: str) -> tuple[list[str], str]:
    """Return the inputs that a run from a clean state copied, and Snakemake's output."""
    for old in (*folder.glob("cut_*"), folder / "all.txt"):
        old.unlink(missing_ok=True)
    for old in (folder / "local", folder / ".snakemake"):
        shutil.rmtree(old, ignore_errors=True)
    log = folder / f"{source}.log"
    log.unlink(missing_ok=True)
    words = [
        "-s",
        source,
        "-c",
        "2",
        "--default-storage-provider",
        "fs",
        "--local-storage-prefix",
        "local",
        "--shared-fs-usage",
        "persistence",
        "sources",
        "source-cache",
        "software-deployment",
        *more,
    ]
    env = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LOG": str(log)}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *words], cwd=folder, env=env, capture_output=True,
        text=True, timeout=PATIENCE_S,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    names = log.read_text().splitlines()
    return [n for n in names if n.startswith("in/") or n == "db.bin"], done.stdout + done.stderr


def test_an_input_with_one_reader_is_linked(folder: Path) -> None:
    plain, _ = _copied(folder, "Snakefile")
    before = (folder / "all.txt").read_text()
    hinted, said = _copied(folder, "hinted.smk")
    assert sorted(plain) == ["db.bin", *(f"in/{i}.bin" for i in range(INPUTS))]
    assert hinted == ["db.bin"], "what many read is copied once, what one reads is linked"
    assert said.count("Creating symlink for on-demand retrieval of in/") == INPUTS
    assert "left out" not in said
    assert (folder / "all.txt").read_text() == before


def test_keeping_local_copies_undoes_it_and_is_said(folder: Path) -> None:
    copied, said = _copied(folder, "hinted.smk", "--keep-storage-local-copies")
    assert len(copied) == INPUTS + 1
    assert "would read without a copy" in said
