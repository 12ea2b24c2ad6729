"""Watch from outside which attributes a file has before its first byte is written or read.

The kernel sends an event (FAN_PRE_ACCESS, Linux 6.14; ext4, XFS, btrfs) before each read and write
of a mount, by any program, and waits for the answer: the watcher reads the earlier attributes.

    with watched(mount) as watch:
        ...
        watch.late(folder, {"out/a.txt": {"user.DP": b"local"}})
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

_EVENT = struct.Struct("<IBBHQii")
_ANSWER = struct.Struct("<iI")
_PRE_CONTENT_CLOEXEC, _ADD_MOUNT, _PRE_ACCESS, _ALLOW = 0x9, 0x11, 0x100000, 1
_STATX_BTIME = 0x800


class Watch:
    """The log of a running watcher."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def empty_accesses(self) -> dict[tuple[int, int], list[dict[str, bytes]]]:
        """Map (inode, birth) to the attributes at each access while the file was empty."""
        found: dict[tuple[int, int], list[dict[str, bytes]]] = {}
        for line in self.log.read_text().splitlines():
            inode, born, attributes = json.loads(line)
            texts = {name: bytes.fromhex(value) for name, value in attributes.items()}
            found.setdefault((inode, born), []).append(texts)
        return found

    def late(self, folder: Path, wanted: Mapping[str, Mapping[str, bytes]]) -> dict[str, str]:
        """Return the files without their attributes before the first byte, and the reason."""
        accesses, late = self.empty_accesses(), {}
        for name, attributes in wanted.items():
            path = folder / name
            seen = accesses.get(identity(path), [])
            if not path.is_file():
                late[name] = "it is not there"
            elif not attributes.items() <= attributes_of(path).items():
                late[name] = "no hint at the end"
            elif path.stat().st_size and not seen:
                late[name] = "nobody saw its first byte"
            elif not all(attributes.items() <= one.items() for one in seen):
                late[name] = "no hint at the first byte"
        return late


def attributes_of(path: Path | str | int) -> dict[str, bytes]:
    """Return the attributes in the namespace of users."""
    return {n: os.getxattr(path, n) for n in os.listxattr(path) if n.startswith("user.")}


def identity(path: Path | str) -> tuple[int, int]:
    """Return inode and birth time (ns): inode numbers of deleted files are reused."""
    libc, facts = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    libc.statx(-100, os.fsencode(path), 0, _STATX_BTIME | 0x100, facts)
    (inode,) = struct.unpack_from("<Q", facts, 32)
    seconds, nanoseconds = struct.unpack_from("<qI", facts, 80)
    return inode, seconds * 10**9 + nanoseconds


@contextmanager
def watched(mount: Path, log: Path) -> Iterator[Watch]:
    """Watch all accesses on the mount. Skips where the kernel does not support it."""
    words = [sys.executable, __file__, mount, log]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline().strip()
        if said != "ready":
            pytest.skip(f"the kernel does not ask before accesses here: {said}")
        yield Watch(log)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def disk(folder: Path, megabytes: int = 512) -> Iterator[Path]:
    """Mount a separate ext4. Skips where that is not possible."""
    image, mount = folder / "disk.img", folder / "disk"
    mount.mkdir()
    with image.open("wb") as stream:
        stream.truncate(megabytes << 20)
    for command in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, mount]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no disk of its own: {done.stderr.strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)
        image.unlink()


def main(mount: str, log: str) -> None:
    """Answer the kernel until killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fanotify_mark.argtypes = [
        ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p,
    ]  # fmt: skip  # a table
    watch = libc.fanotify_init(_PRE_CONTENT_CLOEXEC, os.O_RDONLY | os.O_CLOEXEC)
    if watch < 0 or libc.fanotify_mark(watch, _ADD_MOUNT, _PRE_ACCESS, -100, os.fsencode(mount)):
        print(os.strerror(ctypes.get_errno()), flush=True)
        return
    with Path(log).open("w", buffering=1) as out:
        print("ready", flush=True)
        while True:
            data, at = os.read(watch, 65536), 0
            while at < len(data):
                size, *_, fd, _ = _EVENT.unpack_from(data, at)
                at += size  # some events also contain the range of bytes
                if os.fstat(fd).st_size == 0:
                    texts = {n: v.hex() for n, v in attributes_of(fd).items()}
                    out.write(json.dumps([*identity(f"/proc/self/fd/{fd}"), texts]) + "\n")
                os.write(watch, _ANSWER.pack(fd, _ALLOW))
                os.close(fd)


if __name__ == "__main__":
    main(*sys.argv[1:])
