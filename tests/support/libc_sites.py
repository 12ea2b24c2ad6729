"""Which system-call instructions of a C library the preload library finds, and which it misses.

python -m tests.support.libc_sites FOLDER   (an unpacked libc6 package, or a root file system)
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.built import built
from tests.support.preload import ROOT, SOURCES

OBJECTS = ("libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "librt.so.1")
# Calls that tell nothing of files, by the nearest symbol (libraries are stripped) -> what they are.
HARMLESS = {
    ("mmap", "__mmap"): "code below 2 GiB, where a tunable of the loader asks for it",
    ("mmap", "_dl_mcount"): "the same, in the loader",
    ("writev", "shmctl"): "a message of backtrace_symbols_fd or of the C library that aborts",
    ("writev", "herror"): "a message to standard error",
    ("close", "if_indextoname"): "a socket",
    ("ioctl", "isatty"): "TCGETS",
}
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_NUMBER = re.compile(r"^mov +\$0x([0-9a-f]+),%eax")
_BACK = 14  # instructions between the number and the call


@dataclass(frozen=True)
class Site:
    """A `syscall` instruction: address, number (None: not told by the code before it)."""

    at: int
    number: int | None
    function: str


def build_scan(folder: Path) -> Path:
    """The library's own search as a program."""
    sources = [ROOT / "tests" / "preload" / "scan.c", SOURCES / "hook" / "sites.c"]
    return built(folder / "scan", "gcc", "-O2", "-I", SOURCES, *sources)


def found_by_library(scan: Path, path: Path) -> set[int]:
    """Addresses of the `syscall` instructions that would be led to the library."""
    found = set[int]()
    for offset, address, size in _code(path):
        words = [scan, path, str(offset), str(size)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        lines = (line.split() for line in done.stdout.splitlines())
        found |= {int(at) - offset + address for at, _ in lines}
    return found


def _code(path: Path) -> Iterator[tuple[int, int, int]]:
    """Offset, address and size of the executable segments."""
    words = ["readelf", "-lW", path]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        parts = line.split()
        if parts[:1] == ["LOAD"] and "E" in parts[6:-1]:
            yield int(parts[1], 16), int(parts[2], 16), int(parts[4], 16)


def all_sites(path: Path) -> list[Site]:
    """Every `syscall` instruction, by the disassembler."""
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
    for instruction in reversed(before):
        found = _NUMBER.match(instruction)
        if found:
            return int(found[1], 16)
        if re.match(r"^xor +%eax,%eax", instruction):
            return 0
        if re.search(r",%[re]ax$", instruction) or instruction.startswith(("call", "jmp")):
            return None
    return None


def wanted() -> dict[int, str]:
    """Numbers that the recorder or the core looks at, by its own tables."""
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
    """Sites of wanted calls that the library does not find, but for the harmless ones."""
    found, calls = found_by_library(scan, path), wanted()
    sites = [s for s in all_sites(path) if s.at not in found and s.number in calls]
    return [s for s in sites if (calls[s.number or 0], s.function.split("@")[0]) not in HARMLESS]


def main() -> None:
    """Print what is missed in each object below a folder."""
    calls = wanted()
    with tempfile.TemporaryDirectory() as name:
        scan = build_scan(Path(name))
        for path in sorted(Path(sys.argv[1]).rglob("*.so*")):
            if path.name not in OBJECTS or (path.is_symlink() and "lib64" in path.parts):
                continue
            sites = missed(scan, path)
            print(f"{path}: {len(found_by_library(scan, path))} found of {len(all_sites(path))}")
            for s in sites:
                print(f"  missed: {s.at:#x} {calls[s.number or 0]} in {s.function}")


if __name__ == "__main__":
    main()
