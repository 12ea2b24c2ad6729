"""Boot a kernel with the loader and the workloads, and read its recording.

The guest has no Python: the loader writes its spool, a tar archive on a disk image carries it out,
and the host converts it as `record` would.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tests.support.ebpf import compile_workloads
from tracehint.collectors.ebpf.collector import LOADER
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.spool.convert import convert_spool
from tracehint.schemas.store import Bundle

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CACHE = ROOT / "build" / "kernels"  # git-ignored; some 500 MB
TOOLS = ("qemu-system-x86_64", "qemu-system-aarch64", "aarch64-linux-gnu-gcc", "busybox",
         "mkfs.ext4", "xz")  # fmt: skip  # a table
BASE = Path("/data/base")  # the cases' directory in the guest, on ext4
SECONDS = 400  # 12 s on an idle machine with software emulation
_MACHINES = {  # by Debian's name of the processor: the machine, its console
    "amd64": (("qemu-system-x86_64",), "ttyS0"),
    "arm64": (("qemu-system-aarch64", "-machine", "virt"), "ttyAMA0"),
}
_QEMU = (
    "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1G", "-cpu", "max",
    "-display", "none", "-no-reboot", "-nic", "none",
)  # fmt: skip  # a table
_DISK, _OUT = 512 << 20, 192 << 20


@dataclass(frozen=True)
class Booted:
    """One boot: the console's output and the recording."""

    release: str  # uname -r
    status: dict[str, int]  # case -> exit code
    bundle: Bundle
    stated: Path  # directory of what the cases stated
    console: str


class BootError(Exception):
    """The guest did not finish; the text is the console's output."""


def _kernels() -> list[list[str]]:
    """Return the rows of kernels.txt: name, suite, processor, `refused` if it lacks a feature."""
    return [line.split() for line in (HERE / "kernels.txt").read_text().splitlines()]


def kernel_names() -> list[str]:
    """Return the kernels that can record."""
    return [row[0] for row in _kernels() if "refused" not in row]


def missing_tools() -> list[str]:
    """Return the missing programs of the purpose `kernels` in scripts/packages.txt."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return [tool for tool in TOOLS if shutil.which(tool, path=path) is None]


def boot(name: str, folder: Path, options: tuple[str, ...] = ()) -> Booted:
    """Boot the kernel `name`, record all cases with these loader options. Raises BootError."""
    subprocess.run([HERE / "fetch.sh", CACHE, name], check=True, timeout=900)
    kernel = CACHE / name
    processor = next(row[2] for row in _kernels() if row[0] == name)
    loader, compiler = (LOADER, "cc") if processor == "amd64" else _cross_built(kernel, folder)
    program = compile_workloads(folder, "-static", compiler=compiler)
    image = folder / "initramfs.gz"
    subprocess.run([HERE / "initramfs.sh", kernel, loader, program, image], check=True)
    disk, out, log = folder / "disk.img", folder / "out.img", folder / "console.log"
    for path, size in ((disk, _DISK), (out, _OUT)):
        with path.open("wb") as stream:
            stream.truncate(size)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", disk], check=True)
    given = f" tracehint.options={','.join(options)}" if options else ""
    (vmlinuz,) = kernel.glob("boot/vmlinuz-*")
    disks = [("-drive", f"file={path},format=raw,if=virtio") for path in (disk, out)]
    qemu, port = _MACHINES[processor]
    console = ("-append", f"console={port} panic=-1 quiet{given}", "-serial", f"file:{log}")
    machine = (*qemu, *_QEMU, "-kernel", vmlinuz, "-initrd", image, *console, *chain(*disks))
    try:
        subprocess.run(machine, check=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise BootError(_text(log)) from None
    return _read(folder, out, _text(log))


def _cross_built(root: Path, folder: Path) -> tuple[Path, str]:
    """Build the loader for aarch64; return it and the compiler. `root` has the libraries."""
    compiler, build = "/usr/bin/aarch64-linux-gnu-gcc", folder / "cross"
    target = {
        "CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_C_COMPILER": compiler, "CMAKE_SYSROOT": root, "WITH_BPF": "ON",
        "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
    }  # fmt: skip  # a table
    options = [f"-D{name}={value}" for name, value in target.items()]
    for step in (["-S", ROOT, "-B", build, *options], ["--build", build, "-t", "tracehint-rec"]):
        subprocess.run(["cmake", *step], check=True, timeout=300, stdout=subprocess.DEVNULL)
    return build / "tracehint-rec", compiler


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


def _read(folder: Path, out: Path, console: str) -> Booted:
    if "tracehint: done" not in console:
        raise BootError(console)
    results = folder / "results"
    with tarfile.open(out) as archive:
        archive.extractall(results, filter="data")
    if "tracehint: recorded 0" not in console:
        raise BootError(console + (results / "errors").read_text(errors="replace"))
    host = RecordingHost(name="guest", cpus=2)
    manifest = Manifest(program="tracehint", collector="ebpf", command=[], cwd="/", hosts=[host])
    tables = convert_spool(results / "run", manifest)
    status = dict(re.findall(r"^case (\w+) (\d+)\r?$", console, re.MULTILINE))
    found = re.search(r"^tracehint: kernel (\S+)", console, re.MULTILINE)
    return Booted(
        release=found[1] if found else "",
        status={case: int(code) for case, code in status.items()},
        bundle=Bundle(results / "run", manifest, tables, []),
        stated=results,
        console=console,
    )
