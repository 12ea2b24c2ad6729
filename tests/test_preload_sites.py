"""Every system call of the C library that moves data or names is redirected to the library."""

from __future__ import annotations

import ctypes.util
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.libc_sites import OBJECTS, all_sites, build_scan, found_by_library, missed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the library knows x86-64"),
    pytest.mark.skipif(not shutil.which("objdump"), reason="binutils are not installed"),
]


def objects() -> list[Path]:
    """Return the paths of the C library and the loader of this process."""
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
    """Every site found is a system call: no other code is modified."""
    scan = build_scan(tmp_path)
    for path in objects():
        found, every = found_by_library(scan, path), {site.at for site in all_sites(path)}
        assert found <= every
        assert len(found) > 0.5 * len(every) or not every  # libpthread.so.0 may be empty


FORMS = """
.globl f
f:  mov 16(%rsp), %rax
    syscall
    pop %rbx
    ret
g:  mov 16(%rsp), %rax
    syscall
    add $24, %rsp
    ret
h:  mov 16(%rbp), %rax
    syscall
    leave
    ret
    call arch
    mov %esi, %eax
    syscall
    jmp f
cancel: mov $24, %eax
    ret
arch: {begin}
    mov (%rdi), %eax
    testb $8, (%rdi)
    jne cancel + 0x10000000 # as far as in the C library: four bytes
    mov %rdi, %r11
    mov %rsi, %rax
    mov %rdx, %rdi
    mov %rcx, %rsi
    mov %r8, %rdx
    mov %r9, %r10
    mov 8(%rsp), %r8
    mov 16(%rsp), %r9
    mov %r11, 8(%rsp)
    syscall
    ret
    .skip 64, 0x90
"""


@pytest.mark.parametrize("begin", ["", "endbr64"])
def test_calls_in_which_a_thread_can_be_cancelled(tmp_path: Path, begin: str) -> None:
    """Code forms of glibc 2.41 to 2.43, with frame pointers, and of a build for CET. All are found
    except the call whose number is in a register."""
    (tmp_path / "code.S").write_text(FORMS.format(begin=begin))
    library = tmp_path / "code.so"
    words = ["gcc", "-shared", "-nostdlib", tmp_path / "code.S", "-o", library]
    subprocess.run(words, check=True)
    scan, every = build_scan(tmp_path), [site.at for site in all_sites(library)]
    assert len(every) == 5
    assert sorted(found_by_library(scan, library)) == [*every[:3], every[4]]
    assert [site.at for site in missed(scan, library)] == [every[3]]


def test_a_second_call_of_the_function_is_not_understood(tmp_path: Path) -> None:
    (tmp_path / "code.S").write_text(FORMS.format(begin="") + "call arch\n.skip 64, 0x90\n")
    library = tmp_path / "code.so"
    words = ["gcc", "-shared", "-nostdlib", tmp_path / "code.S", "-o", library]
    subprocess.run(words, check=True)
    scan, every = build_scan(tmp_path), [site.at for site in all_sites(library)]
    assert [site.at for site in missed(scan, library)] == [every[3], every[4]]
