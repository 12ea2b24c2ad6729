"""Redact a spool that is not converted. With the standard library only: it runs at the end of a
recording, when loading NumPy would cost more than the work."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from tracehint.schemas.losses import tally
from tracehint.schemas.redact.commands import redact_argv, redact_text
from tracehint.schemas.spool.constants import LOSSES

_EXEC = struct.Struct("<IIQIIQ")  # th_spool_exec of collectors/ebpf/spool.h
_LOSS = struct.Struct("<IIQ")  # th_spool_loss
_KEPT = 4096  # cached texts: most processes repeat the arguments of others

Redact = Callable[[bytes], tuple[bytes, int]]


def redact_spool(folder: Path) -> int:
    """Redact secrets in arguments and markers; the originals are overwritten.

    Returns the number of secrets. Raises OSError.
    """
    execs = bytearray((folder / "execs.bin").read_bytes())
    originals: list[tuple[int, int]] = []
    hits = 0
    argv, env = lru_cache(_KEPT)(_argv), lru_cache(_KEPT)(_env)
    with (folder / "heap.bin").open("r+b") as heap:
        for at in range(0, len(execs) - _EXEC.size + 1, _EXEC.size):
            epoch, spare, argv_at, argv_len, env_len, env_at = _EXEC.unpack_from(execs, at)
            new_argv = _move_redacted(heap, (argv_at, argv_len), argv)
            new_env = _move_redacted(heap, (env_at, env_len), env)
            if new_argv[2] + new_env[2] == 0:
                continue
            hits += new_argv[2] + new_env[2]
            originals += [(argv_at, argv_len)] * (new_argv[2] > 0)
            originals += [(env_at, env_len)] * (new_env[2] > 0)
            _EXEC.pack_into(execs, at, epoch, spare, *new_argv[:2], new_env[1], new_env[0])
        (folder / "execs.bin").write_bytes(execs)
        for offset, length in originals:  # last: two processes may share them
            heap.seek(offset)
            heap.write(bytes(length))
    return hits


def _move_redacted(heap: BinaryIO, place: tuple[int, int], redact: Redact) -> tuple[int, int, int]:
    """Append the redacted text to the heap; return its offset, length and number of secrets."""
    offset, length = place
    heap.seek(offset)
    new, hits = redact(heap.read(length))
    if not hits:
        return offset, length, 0
    offset = heap.seek(0, 2)
    heap.write(new)
    return offset, len(new), hits


def _argv(text: bytes) -> tuple[bytes, int]:
    chosen, hits = redact_argv(text.removesuffix(b"\0").split(b"\0"))
    return b"\0".join(chosen) + b"\0", hits


def _env(text: bytes) -> tuple[bytes, int]:
    pairs = [pair.partition(b"=") for pair in text.split(b"\0")]
    done = [(name + equals, redact_text(value)) for name, equals, value in pairs]
    return b"\0".join(name + new for name, (new, _) in done), sum(n for _, (_, n) in done)


def lost_in_spool(folder: Path) -> dict[str, int]:
    """Return the recorder's losses by kind. Raises OSError."""
    data = (folder / "losses.bin").read_bytes()
    whole = data[: len(data) // _LOSS.size * _LOSS.size]
    rows = [(kind, count) for kind, _, count in _LOSS.iter_unpack(whole) if count]
    return tally((LOSSES[kind], count) for kind, count in rows if kind in LOSSES)
