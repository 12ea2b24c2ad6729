"""Every system call of the C library that moves data or names is led to the preload library."""

from __future__ import annotations

import ctypes.util
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.libc_sites import OBJECTS, all_sites, build_scan, found_by_library, missed
from tracehint.collectors.preload.blind import LIBRARY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the library knows x86-64"),
    pytest.mark.skipif(not shutil.which("objdump"), reason="binutils are not installed"),
]


def objects() -> list[Path]:
    """The C library and the loader of this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {Path(line.split(maxsplit=5)[5]) for line in lines if line.count("/") > 1}
    named = [p for p in paths if p.name in OBJECTS and p.is_file()]
    if named:
        return sorted(named)
    found = ctypes.util.find_library("c")
    return list(Path("/lib/x86_64-linux-gnu").glob(found or "libc.so.6"))


def test_no_call_of_interest_is_missed(tmp_path: Path) -> None:
    scan = build_scan(tmp_path)
    assert objects()
    for path in objects():
        assert missed(scan, path) == []


def test_the_search_and_the_disassembler_agree(tmp_path: Path) -> None:
    """What is found is a system call each time: nothing else is changed."""
    scan = build_scan(tmp_path)
    for path in objects():
        found, every = found_by_library(scan, path), {site.at for site in all_sites(path)}
        assert found <= every
        assert len(found) > 0.5 * len(every) or not every  # libpthread.so.0 may be empty


def test_a_number_on_the_stack(tmp_path: Path) -> None:
    """As glibc 2.41 makes the calls that it can cancel; another end has no known way back."""
    (tmp_path / "code.S").write_text(
        ".globl f\nf: mov 16(%rsp), %rax\nsyscall\npop %rbx\nret\n"
        "g: mov 16(%rsp), %rax\nsyscall\njmp f\n.skip 64, 0x90\n"
    )
    library = tmp_path / "code.so"
    words = ["gcc", "-shared", "-nostdlib", tmp_path / "code.S", "-o", library]
    subprocess.run(words, check=True)
    found = sorted(found_by_library(build_scan(tmp_path), library))
    assert [site.at for site in all_sites(library)][:1] == found


def test_no_system_call_of_ours_is_followed_by_a_return_that_is_not_foreseen() -> None:
    """docs/rationale/returns-foreseen.md. Go's stacks have no room for it: th_bare_entry."""
    words = ["objdump", "-d", "--no-show-raw-insn", LIBRARY]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t")[1].split()[0] for line in text.splitlines() if "\t" in line]
    behind = [tuple(rows[at + 1 : at + 4]) for at, op in enumerate(rows) if op == "syscall"]
    foreseen = ("cmpb", "je", "call")  # unless it is slower here (th_foreseen)
    assert sorted(then if then[0] == "cmpb" else then[:1] for then in behind) == [
        foreseen, foreseen, ("ret",)
    ]  # fmt: skip  # a table
