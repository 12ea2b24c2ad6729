"""The preload library in programs with limited resources, other users, or their own C libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.preload import compiled
from tests.test_preload_record import pytestmark as _recorded_at_all
from tests.test_preload_record import recorded, totals
from tracehint.collectors.preload.library import LIBRARY

pytestmark = _recorded_at_all

SECOND = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
static char bytes[50000];
int main(int argc, char **argv)
{
    for (int i = 0; i < 40; i++) {
        void *c = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
        int (*open_)(const char *, int, ...) = c ? dlsym(c, "open") : 0;
        ssize_t (*read_)(int, void *, size_t) = c ? dlsym(c, "read") : 0;
        int (*close_)(int) = c ? dlsym(c, "close") : 0;
        if (!c)
            return 1;
        int fd = open_("in", O_RDONLY);
        if (read_(fd, bytes, sizeof(bytes)) != sizeof(bytes) || close_(fd) || dlclose(c))
            return 2;
        if (argc < 2)
            break;
    }
    int fd = open("in", O_RDONLY);
    return read(fd, bytes, 7) != 7;
}
"""
REWRITTEN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char bytes[50000];
static int each(struct dl_phdr_info *info, size_t size, void *data)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        char *start = (char *)((info->dlpi_addr + part->p_vaddr) & ~4095UL);
        size_t whole = (part->p_memsz + 4095) & ~4095UL;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) ||
            (!strstr(info->dlpi_name, "libc.so") && !strstr(info->dlpi_name, "ld-linux")))
            continue;
        for (size_t at = 0; at < whole; at += 4096) {
            volatile char *last = start + at + 4095;
            if (mprotect(start + at, 4096, 7))
                return 1;
            *last = *last;
            if (mprotect(start + at, 4096, 5))
                return 1;
        }
    }
    return 0;
}
int main(void)
{
    if (dl_iterate_phdr(each, 0))
        return 1;
    int fd = open("in", O_RDONLY);
    return read(fd, bytes, sizeof(bytes)) != sizeof(bytes);
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").write_bytes(bytes(50000))
    return tmp_path


def test_a_second_c_library_is_seen(folder: Path) -> None:
    program = compiled(folder, "second", SECOND)
    assert totals(recorded(folder, program), "in")[0] == 50007


def test_many_c_libraries_one_after_the_other_go_on(folder: Path) -> None:
    program = compiled(folder, "second", SECOND)
    assert totals(recorded(folder, program, "many"), "in")[0] >= 50007


def test_a_program_that_writes_to_the_code_of_the_c_library(folder: Path) -> None:
    program = compiled(folder, "rewritten", REWRITTEN)
    assert totals(recorded(folder, program), "in")[0] == 50000


def test_little_address_space_is_enough(folder: Path) -> None:
    bundle = recorded(folder, "sh", "-c", "ulimit -v 60000; cat in > out")
    assert totals(bundle, "in") == (50000, 0)
    assert totals(bundle, "out") == (0, 50000)
    assert bundle.tables["losses"].num_rows == 0


def test_a_program_without_room_for_the_library_is_counted(folder: Path) -> None:
    bundle = recorded(folder, "sh", "-c", "ulimit -v 6500; exec cat in > out")
    assert (folder / "out").stat().st_size == 50000
    assert [r["kind"] for r in bundle.tables["losses"].to_pylist()] == ["open_table_full"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as others")
@pytest.mark.parametrize("how", ["fork", "exec"])
def test_programs_of_another_user_are_named(folder: Path, how: str) -> None:
    code = f"""
import os
if {how == "exec"} or not os.fork():
    os.chdir("/")
    os.setuid(65534)
    os.execv("/bin/cat", ["cat", "/etc/hostname"])
os.wait()
"""
    bundle = recorded(folder, sys.executable, "-c", code)
    losses = bundle.tables["losses"].to_pylist()
    named = [(r["kind"], r["detail"]) for r in losses]
    assert named == [("unentered_programs", "may not open the recording")]
    ran = [row["argv"] for row in bundle.tables["processes"].to_pylist()]
    assert [b"cat", b"/etc/hostname"] in ran


def test_300_processes_each_of_the_last(folder: Path) -> None:
    text = r"""
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
static char bytes[50000];
int main(void)
{
    for (int i = 0; i < 300; i++) {
        int status = 0, pid = fork();
        if (pid)
            _exit(pid < 0 || waitpid(pid, &status, 0) != pid || status);
    }
    int fd = open("in", O_RDONLY);
    _exit(read(fd, bytes, sizeof(bytes)) != sizeof(bytes));
}
"""
    bundle = recorded(folder, compiled(folder, "deep", text))
    assert totals(bundle, "in") == (50000, 0)
    assert bundle.tables["processes"].num_rows == 301
    assert bundle.tables["losses"].num_rows == 0


WRONG_POINTERS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static void show(long result)
{
	printf("%ld %d\n", result, errno);
}
#define TRY(...) (errno = 0, show(syscall(__VA_ARGS__)))
int main(void)
{
	char *bad = (char *)5000, *words[] = {"true", bad, 0}, *good[] = {"true", 0};
	char **lists[] = {(char **)bad, words};

	setbuf(stdout, 0);
	TRY(SYS_execve, bad, good, good);
	TRY(SYS_execveat, AT_FDCWD, bad, good, good, 0);
	for (int i = 0; i < 2; i++) {
		TRY(SYS_execve, "/bin/true", lists[i], good);
		TRY(SYS_execve, "/bin/true", good, lists[i]);
		TRY(SYS_execveat, AT_FDCWD, "/bin/true", lists[i], good, 0);
	}
	TRY(SYS_open, bad, 0);
	TRY(SYS_rename, bad, bad);
	TRY(SYS_openat2, AT_FDCWD, "in", bad, 24);
	TRY(SYS_clone3, bad, 88);
	TRY(SYS_io_submit, 0, 1, bad);
	return 0;
}
"""


def test_addresses_that_are_not_mapped_are_errors_as_without_the_library(tmp_path: Path) -> None:
    program = compiled(tmp_path, "wrong", WRONG_POINTERS)
    plain = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert plain.count("-1 14\n") >= 10
    recorded(tmp_path, "sh", "-c", f"{program} > out")
    assert (tmp_path / "out").read_text() == plain


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_valgrind_finds_no_errors_of_ours(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(100))
    script = "valgrind -q --error-exitcode=9 cat in in > out 2> err; echo $? >> err"
    recorded(tmp_path, "sh", "-c", script)
    assert (tmp_path / "err").read_text() == "0\n"
    assert (tmp_path / "out").stat().st_size == 200


@pytest.mark.parametrize("later", [False, True])
def test_the_libraries_of_two_installations_in_one_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """Only the first records: two would redirect the same calls and jump into each other."""
    other = tmp_path / "other" / LIBRARY.name
    other.parent.mkdir()
    shutil.copy(LIBRARY, other)
    (tmp_path / "in").write_bytes(bytes(50_000))
    program = "import os, sys; sys.exit(len(os.read(os.open('in', os.O_RDONLY), 7)) - 7)"
    if later:
        program = f"import ctypes; ctypes.CDLL({str(other)!r}); {program}"
    else:
        monkeypatch.setenv("LD_PRELOAD", str(other))
    assert totals(recorded(tmp_path, sys.executable, "-c", program), "in") == (7, 0)
