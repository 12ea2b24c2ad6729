"""All cases again on other file systems, which differ in what identifies a file."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ebpf import compile_workloads, record, require_ebpf
from tests.test_ebpf_coverage import CASES, Run, check_case

pytestmark = [pytest.mark.ebpf, pytest.mark.slow]

# overlayfs maps the layer's inode, not its own: the mapped range is recorded instead of faults
# tmpfs maps a page writable when it is read: reads are counted as writes too
WRITES = {"map_write_few", "map_read_into"}
MAPPED = {"map_sparse", "map_fork", "map_grandchild", "map_remap"}
UNSEEN = {"tmpfs": WRITES, "overlay": WRITES | MAPPED}
OPTIONS = "lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work"


@contextmanager
def mounted(kind: str, folder: Path) -> Iterator[Path | None]:
    """Mount a fresh file system below `folder`; None where that is not possible."""
    where = folder / "fs"
    where.mkdir()
    source = "none"
    options: list[str] = []
    layers: Path | None = None
    if kind in ("xfs", "btrfs"):
        image = folder / "image"
        program = shutil.which(f"mkfs.{kind}")
        if program is None:
            yield None
            return
        with image.open("wb") as stream:
            stream.truncate(400 << 20)
        subprocess.run([program, "-q", image], check=True, capture_output=True)
        source, options = str(image), ["-o", "loop"]
    elif kind == "overlay":
        layers = folder / "layers"
        layers.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", layers], check=True)
        for name in ("lower", "upper", "work"):
            (layers / name).mkdir()
        options = ["-o", OPTIONS.format(layers)]
    command: list[str | Path] = ["mount", "-t", kind, *options, source, where]
    if kind == "fuse":
        (folder / "behind").mkdir()
        if shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
            yield None
            return
        command = ["bindfs", "-o", "hard_remove", folder / "behind", where]
    done = subprocess.run(command, capture_output=True, check=False)
    try:
        yield None if done.returncode else where
    finally:
        subprocess.run(["umount", where], check=False, capture_output=True)
        if layers is not None:
            subprocess.run(["umount", layers], check=True)


@pytest.mark.parametrize("kind", ["tmpfs", "overlay", "xfs", "btrfs", "fuse"])
def test_all_cases(tmp_path: Path, kind: str) -> None:
    require_ebpf()
    if os.geteuid():
        return  # mounting needs root; the page lists what was tested where
    program = compile_workloads(tmp_path)
    with mounted(kind, tmp_path) as where:
        if where is None:
            return  # not supported by this kernel, or no mkfs
        base = where / "base"
        base.mkdir()
        _, bundle = record(tmp_path / "run.trace", program, "all", base)
        status = {
            row["argv"][1].decode(): row["exit_code"]
            for row in bundle.tables["processes"].to_pylist()
            if len(row["argv"]) == 2 and row["argv"][0] == bytes(program)
        }
        run = Run(bundle, base, status)
        failed = {}
        for case in CASES:
            try:
                check_case(run, case)
            except AssertionError as error:
                failed[case] = str(error)[:300]
    assert set(failed) == UNSEEN.get(kind, set()), failed
