"""The coverage matrix as a page: what each collector records of each case of tests/workloads.

    python -m tests.support.coverage_matrix > docs/collectors/coverage.md

The eBPF and bpftrace columns are measured by running the cases; those of strace and preload are
the expectations of tests/test_strace_coverage.py and tests/test_preload_coverage.py.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.support.ebpf import compile_workloads, record
from tests.test_bpftrace import UNSEEN as UNSEEN_BPFTRACE
from tests.test_bpftrace import run_all
from tests.test_ebpf_coverage import CASES, Run, check_case
from tests.test_preload_coverage import UNSEEN as UNSEEN_PRELOAD
from tests.test_strace_coverage import UNSEEN, _check

# case -> its description
TITLES = {
    "rw_sequential": "read, write", "rw_positions": "pread, pwrite",
    "rw_vectors": "readv, writev, preadv, pwritev, preadv2, pwritev2", "rw_append": "O_APPEND",
    "rw_append_processes": "O_APPEND by several processes", "rw_direct": "O_DIRECT",
    "rw_small": "4,999 reads of one byte", "rw_stride": "constant stride",
    "rw_failed": "calls that fail", "fd_fork": "descriptor shared by fork",
    "fd_dup": "dup, dup2, dup3, F_DUPFD", "fd_close_range": "close_range",
    "fd_passed": "descriptor passed (SCM_RIGHTS)", "fd_pidfd_getfd": "pidfd_getfd",
    "fd_reopened": "reopened through /proc/self/fd", "fd_shell": "opened by the shell before exec",
    "fd_many": "101 descriptors", "fd_memfd": "memfd is no file",
    "fd_cloexec_after_exec": "closed by exec, number used again", "copy_range": "copy_file_range",
    "copy_sendfile": "sendfile", "copy_splice": "splice, tee", "copy_clone": "FICLONE",
    "copy_fallocate": "fallocate: punch hole, zero range",
    "copy_truncate": "truncate, ftruncate, O_TRUNC", "name_rename_chain": "rename chain",
    "name_replace": "rename over a file", "name_exchange": "renameat2 (exchange)",
    "name_link_unlink": "link + unlink as rename", "name_unlink": "unlink",
    "name_unlink_open": "unlink while open", "name_symlink": "symbolic link",
    "name_directory": "rename of a directory", "name_at": "renameat, unlinkat with dirfd and ..",
    "name_tmpfile": "O_TMPFILE + linkat", "name_hostile": "newlines, quotes, escapes, not UTF-8",
    "name_deep": "80 levels", "name_inode_reuse": "inode number used again",
    "map_read": "mmap, read", "map_part": "mmap of a part",
    "map_write": "mmap, shared write, msync",
    "map_write_few": "mmap: only the written pages",
    "map_read_into": "mmap: read() into the mapping",
    "map_private_write": "mmap, private write", "map_remap": "mremap",
    "map_sparse": "mmap: only the touched pages", "map_fork": "mapping used after fork",
    "map_grandchild": "mapping used when who mapped it has ended",
    "process_fork": "fork without exec", "process_vfork": "vfork",
    "process_clone": "clone variants",
    "process_killed": "SIGKILL with open files", "process_exec_chain": "exec chain",
    "process_daemon": "daemon", "thread_stripes": "8 threads, one descriptor",
    "thread_files": "8 threads, a file each", "thread_exec": "exec by a thread",
    "thread_outlives_first": "first thread ends first", "special_32bit": "32-bit system calls",
    "special_chroot": "chroot", "special_bind": "bind mount", "special_overlay": "overlayfs",
    "special_tmpfs": "tmpfs", "uring_plain": "io_uring", "uring_async": "io_uring, forced async",
    "uring_sqpoll": "io_uring, SQPOLL", "uring_linked": "io_uring, linked requests",
    "uring_fixed": "io_uring, fixed files and buffers", "uring_vectors": "io_uring, vectors",
    "aio_scattered": "libaio",
}  # fmt: skip  # a table

# Observed in runs of Darshan's preload library (Debian 12, 27 commands); no other claims.
DARSHAN = {
    "rw_sequential": "bytes and ranges", "rw_failed": "opens",
    "fd_shell": "no bytes: opened before exec", "copy_range": "opens, no bytes",
    "copy_sendfile": "opens, no bytes", "copy_truncate": "opens, no new size",
    "name_rename_chain": "no rename", "name_unlink": "no unlink", "map_read": "opens, no bytes",
    "process_fork": "yes", "process_killed": "no log is left",
    "process_exec_chain": "a log per program",
}  # fmt: skip  # a table
UNTESTED = "not tested"


def local_run(folder: Path) -> Run:
    """Record all cases on this machine with eBPF."""
    program = compile_workloads(folder)
    (folder / "base").mkdir()
    page = os.dup(1)
    os.dup2(2, 1)  # the cases' output is not part of the page
    try:
        _, bundle = record(folder / "run.trace", program, "all", folder / "base")
    finally:
        os.dup2(page, 1)
        os.close(page)
    status = {
        row["argv"][1].decode(): row["exit_code"]
        for row in bundle.tables["processes"].to_pylist()
        if len(row["argv"]) == 2 and row["argv"][0] == bytes(program)
    }
    return Run(bundle, folder / "base", status)


def main() -> None:
    """Run the cases and print the page."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text).resolve()
        run = local_run(folder)
        (folder / "bpftrace").mkdir()
        other = run_all(folder / "bpftrace")
        print(HEAD)
        for case, title in TITLES.items():
            darshan = DARSHAN.get(case, UNTESTED)
            cells = [title, ebpf_cell(run, case), _preload(case), _strace(case)]
            cells += [_bpftrace(other, case), darshan]
            print(f"| {' | '.join(cells)} |")
        print(TAIL)


def ebpf_cell(run: Run, case: str) -> str:
    """Return what one recording contains of a case."""
    if run.status.get(case) == 77:
        return "not on this file system"
    try:
        check_case(run, case)
    except AssertionError as error:
        print(f"{case}: {str(error).splitlines()[:1]}", file=sys.stderr)
        return "**no**"
    bound = case.startswith(("map_", "aio_"))
    return "yes, whole pages or requests" if bound else "exact"


def _bpftrace(run: Run, case: str) -> str:
    if run.status.get(case) == 77:
        return "not on this file system"
    try:
        _check(run, case)
    except (AssertionError, KeyError):
        return f"no: {UNSEEN_BPFTRACE[case]}"
    return "mapped range" if case.startswith("map_") else "exact"


def _strace(case: str) -> str:
    if case in UNSEEN:
        return f"no: {UNSEEN[case]}"
    return "mapped range" if case.startswith("map_") else "exact"


def _preload(case: str) -> str:
    if case in UNSEEN_PRELOAD:
        return f"no: {UNSEEN_PRELOAD[case]}"
    return "mapped range" if case.startswith("map_") else "exact"


HEAD = """# What each collector sees

Each row is a case of `tests/workloads`: a program that states what it did, recorded, and compared
byte by byte, range by range, process by process. The eBPF and bpftrace columns are the result on
Linux 6.18 of `python -m tests.support.coverage_matrix`; strace is held to its column by
`tests/test_strace_coverage.py`, [preload](preload.md) by `tests/test_preload_coverage.py`,
[bpftrace](bpftrace.md) by `tests/test_bpftrace.py`. The Darshan column holds what runs of
Darshan's preload library showed. [Other kernels](kernels.md) have a page of
their own.

| case | eBPF | preload | strace | bpftrace | Darshan |
|---|---|---|---|---|---|"""

TAIL = """
Runtimes, each exact with eBPF (`tests/test_ebpf_runtimes.py`): a static C program (all cases
above), static Go with 8 goroutines, a JVM with 8 threads, Python with mmap, copyfile and fork
without exec. Darshan left no log for static C, static Go, `env -i` and killed programs.

File systems: all cases pass on ext4, tmpfs, XFS, FUSE (bindfs) and btrfs (there FICLONE too) and,
but for touched and written pages and mremap, on overlayfs; but for written pages on tmpfs
(`tests/test_ebpf_filesystems.py`).

Not had on eBPF, and why:

- overlayfs maps the inode of the layer, not its own: mappings there are recorded as the mapped
  range, and what mremap adds is missed.
- tmpfs, ramfs and hugetlbfs map a page writable when it is read: of a shared writable mapping
  there, every page that was brought in counts as written too (a bound, `exact` is false).
- Writes into a mapping that go past the page tables (direct I/O with the mapping as its buffer,
  `process_vm_writev`, RDMA) raise no fault of the processor; that pages were brought in is seen.
- A page of a large folio that is written maps the folio for writing (up to 2 MiB): all of it counts
  as written. A written page that `mprotect` takes away and gives back raises no fault again: of
  later writes to it only the first is timed.
- A fault at the moment in which another thread changes the mappings cannot be placed: of writes
  the bound is recorded from then on, of reads what the kernel's own tracepoints report.
- A mapping that is used more than four generations of forks below the process that made it.
- Before Linux 6.12 there are no tracepoints of faults on files: the mapped range is recorded.
- A program that changes credentials is not followed unless root records; counted as
  `credentials_exec`.

Programs that are easily misread have [a page of their own](hostile.md).
"""

assert set(TITLES) == set(CASES), set(TITLES) ^ set(CASES)

if __name__ == "__main__":
    main()
