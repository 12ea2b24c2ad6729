"""The page of kernels and cases: boots each kernel and records on this machine too.

python -m tests.kernels.matrix > docs/collectors/kernels.md
"""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path

from tests.kernels.boot import BASE, boot, kernel_names
from tests.support.coverage_matrix import TITLES, ebpf_cell, local_run
from tests.test_ebpf_coverage import Run
from tests.test_kernels import NO_FAULTS

HEAD = """# Kernels

The same loader file, the same cases, on the kernels that Debian ships: `make test-kernels` fetches
them with apt, boots each in QEMU (software emulation) with an initramfs of busybox, the loader and
the workloads, records all cases on ext4, brings the spool out on a disk image and compares it byte
by byte on the host (`tests/test_kernels.py`). This page is what `python -m tests.kernels.matrix`
printed.

6.1 is the oldest kernel that was booted and records. The programs need `bpf_loop` and
`bpf_find_vma`, which came with 5.17; Debian 11's 5.10 refuses them, and the loader names what it
lacks. What newer ones add:

| since | what |
|---|---|
| 6.2 | kernel memory is read by a plain load (`bpf_rdonly_cast`); before, by a call (34 ns) |
| 6.12 | faults on files have tracepoints: mappings are recorded by the pages touched and written |

Before 6.12 a mapping is recorded as the mapped range, a bound (`exact` is false); on aarch64
always, as the processor's faults have no tracepoints there.

The other distributions' kernels between 6.1 and 6.18 were not booted.
"""


def main() -> None:
    """Boot the kernels and print the page."""
    columns: dict[str, dict[str, str]] = {}
    for name in kernel_names():
        with tempfile.TemporaryDirectory() as text:
            booted = boot(name, Path(text).resolve())
            run = Run(booted.bundle, BASE, booted.status, booted.stated)
            columns[booted.release] = {case: _cell(run, case) for case in TITLES}
    with tempfile.TemporaryDirectory() as text:
        run = local_run(Path(text).resolve())
        series = ".".join(platform.release().split(".")[:2])
        columns[f"{series}, not emulated"] = {case: ebpf_cell(run, case) for case in TITLES}
    print(HEAD)
    print(f"| case | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for case, title in TITLES.items():
        print(f"| {title} | {' | '.join(cells[case] for cells in columns.values())} |")


def _cell(run: Run, case: str) -> str:
    text = ebpf_cell(run, case)
    return "the mapped range" if text == "**no**" and case in NO_FAULTS else text


if __name__ == "__main__":
    main()
