"""System-call instructions of a C library that the preload library finds, and those it misses.

python -m tests.support.libc_sites FOLDER   (an unpacked libc6 package, or a root file system)
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.built import built
from tests.support.preload import ROOT, SOURCES

OBJECTS = ("libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "librt.so.1")
# Calls that do not concern files, by the nearest symbol (libraries are stripped) -> purpose.
HARMLESS = {
    ("mmap", "__mmap"): "code below 2 GiB, where a tunable of the loader asks for it",
    ("mmap", "_dl_mcount"): "the same, in the loader",
    ("mmap", "_dl_catch_error"): "the same, of glibc 2.31",
    ("writev", "shmctl"): "a message of backtrace_symbols_fd or of the C library that aborts",
    ("writev", "herror"): "a message to standard error",
    ("close", "if_indextoname"): "a socket",
    ("ioctl", "isatty"): "TCGETS",
    ("readlinkat", "_dl_find_dso_for_object"): "the loader, for the program's own directory",
}
# Calls whose number is not determined by the code before them, likewise -> purpose.
HARMLESS_UNKNOWN = {
    "__fsetlocking": "futex", "aio_init": "futex", "__mmap": "arch_prctl, in a table of numbers",
    "__pthread_get_minstack": "setxid in each thread", "raise": "tgkill",
    "shmctl": "a message of the C library that aborts", "__pthread_mutex_lock_full": "futex",
    "__pthread_mutex_cond_lock_full": "futex", "pthread_mutex_setprioceiling": "futex",
    "do_futex_wait": "futex", "do_futex_wait.constprop.0": "futex",
    "__pthread_clockjoin_ex": "futex", "sighandler_setxid": "setxid in each thread",
    "__nptl_setxid": "setxid in each thread",
}  # fmt: skip  # a table
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_BACK = 60  # maximum instructions between the number and the call
_KEPT = ("bx", "bp", "r12", "r13", "r14", "r15")  # registers that a call preserves


@dataclass(frozen=True)
class Site:
    """A `syscall` instruction: address, number (None: not set by the code before it)."""

    at: int
    number: int | None
    function: str


def build_scan(folder: Path) -> Path:
    """Build the library's own search as a program."""
    sources = [ROOT / "tests" / "preload" / "scan.c", SOURCES / "hook" / "sites.c"]
    return built(folder / "scan", "gcc", "-O2", "-I", SOURCES, *sources)


def found_by_library(scan: Path, path: Path) -> set[int]:
    """Return addresses of the `syscall` instructions that would be redirected to the library."""
    found = set[int]()
    for offset, address, size in _code(path):
        words = [scan, path, str(offset), str(size)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        lines = (line.split() for line in done.stdout.splitlines())
        found |= {int(at) - offset + address for at, _ in lines}
    return found


def _code(path: Path) -> Iterator[tuple[int, int, int]]:
    """Yield offset, address and size of the executable segments."""
    words = ["readelf", "-lW", path]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        parts = line.split()
        if parts[:1] == ["LOAD"] and "E" in parts[6:-1]:
            yield int(parts[1], 16), int(parts[2], 16), int(parts[4], 16)


def all_sites(path: Path) -> list[Site]:
    """Return every `syscall` instruction, by the disassembler."""
    words = ["objdump", "-d", "--no-show-raw-insn", path]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    sites, before, function = list[Site](), list[str](), ""
    for line in text.splitlines():
        named = _FUNCTION.match(line)
        if named:
            function, before = named[1], []
        elif "\t" in line:
            address, _, instruction = line.partition(":")
            if instruction.strip() == "syscall":
                sites.append(Site(int(address, 16), _number(before), function))
            before = [*before[-_BACK:], instruction.strip()]
    return sites


def _number(before: list[str]) -> int | None:
    """Return the last value of eax, also if it is copied from another register."""
    name = "ax"
    for instruction in reversed(before):
        register = rf"%(?:[re]?{name}|{name}d)$"
        found = re.match(rf"^mov +\$0x([0-9a-f]+),{register}", instruction)
        if found:
            return int(found[1], 16)
        if re.match(rf"^xor +%e?{name}d?,{register}", instruction):
            return 0
        moved = re.match(rf"^mov +%[re]?(\w+?)d?,{register}", instruction)
        if moved:
            name = moved[1]
        elif re.search("," + register, instruction) or _ends(instruction, name):
            return None
    return None


def _ends(instruction: str, name: str) -> bool:
    """Whether the instruction can change the register's value."""
    return instruction.startswith("jmp") or (instruction.startswith("call") and name not in _KEPT)


def wanted() -> dict[int, str]:
    """Return the call numbers that the recorder or the core handles, by its own tables."""
    rows = (SOURCES / "record" / "rows.inc").read_text()
    names = re.findall(r"^(?:AFTER|BEFORE|AROUND)\((\w+),", rows, re.M)
    core = (SOURCES / "hook" / "dispatch.c").read_text()
    names += [*re.findall(r"\{__NR_(\w+), TH_ACT", core), "exit_group"]
    source = "#include <asm/unistd.h>\n" + "".join(f"{n} __NR_{n}\n" for n in names)
    done = subprocess.run(
        ["gcc", "-E", "-P", "-"], input=source, check=True, capture_output=True, text=True
    )
    pairs = (line.split() for line in done.stdout.splitlines() if line.strip())
    return {int(number): name for name, number in pairs}


def missed(scan: Path, path: Path) -> list[Site]:
    """Return sites that the library does not find, of wanted calls and of calls with an unknown
    number, except the harmless ones."""
    found, calls = found_by_library(scan, path), wanted()
    return [s for s in all_sites(path) if s.at not in found and not _is_harmless(s, calls)]


def _is_harmless(site: Site, calls: Mapping[int, str]) -> bool:
    function = site.function.split("@")[0]
    if site.number is None:
        return function in HARMLESS_UNKNOWN
    return site.number not in calls or (calls[site.number], function) in HARMLESS


def main() -> None:
    """Print the missed sites in each object below a folder."""
    calls = wanted()
    with tempfile.TemporaryDirectory() as name:
        scan = build_scan(Path(name))
        for path in sorted(Path(sys.argv[1]).rglob("*.so*")):
            if path.name not in OBJECTS or (path.is_symlink() and "lib64" in path.parts):
                continue
            sites = missed(scan, path)
            print(f"{path}: {len(found_by_library(scan, path))} found of {len(all_sites(path))}")
            for s in sites:
                name = "unknown number" if s.number is None else calls[s.number]
                print(f"  missed: {s.at:#x} {name} in {s.function}")


if __name__ == "__main__":
    main()
