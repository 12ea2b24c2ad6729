"""Secrets out of a spool that is left as it is. With the standard library only: it runs at the end
of a recording, when loading NumPy would cost more than the work."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from tracehint.schemas.losses import tally
from tracehint.schemas.spool.kinds import LOSSES

_EXEC = struct.Struct("<IIQIIQ")  # th_spool_exec of collectors/ebpf/spool.h
_ARGV_OFF, _ARGV_LEN = 2, 3
_LOSS = struct.Struct("<IIQ")  # th_spool_loss

Redact = Callable[[Sequence[bytes]], tuple[list[bytes], int]]


def redact_spool(folder: Path, redact: Redact) -> int:
    """Replace arguments by what `redact` makes of them; the originals are overwritten.

    Returns how many secrets there were. Raises OSError.
    """
    execs = bytearray((folder / "execs.bin").read_bytes())
    originals: list[tuple[int, int]] = []
    hits = 0
    with (folder / "heap.bin").open("r+b") as heap:
        for at in range(0, len(execs) - _EXEC.size + 1, _EXEC.size):
            row = list(_EXEC.unpack_from(execs, at))
            heap.seek(row[_ARGV_OFF])
            text = heap.read(row[_ARGV_LEN])
            chosen, count = redact(text.removesuffix(b"\0").split(b"\0"))
            if not count:
                continue
            hits += count
            originals.append((row[_ARGV_OFF], len(text)))
            new = b"\0".join(chosen) + b"\0"
            row[_ARGV_OFF : _ARGV_LEN + 1] = heap.seek(0, 2), len(new)
            heap.write(new)
            _EXEC.pack_into(execs, at, *row)
        (folder / "execs.bin").write_bytes(execs)
        for offset, length in originals:  # last: two processes may share them
            heap.seek(offset)
            heap.write(bytes(length))
    return hits


def lost_in_spool(folder: Path) -> dict[str, int]:
    """What the recorder lost, by kind. Raises OSError."""
    data = (folder / "losses.bin").read_bytes()
    whole = data[: len(data) // _LOSS.size * _LOSS.size]
    rows = [(kind, count) for kind, _, count in _LOSS.iter_unpack(whole) if count]
    return tally((LOSSES[kind], count) for kind, count in rows if kind in LOSSES)
