"""The recording of one job on one node as one file, `JOB.HOST.NUMBER.job`.

The job's recorder writes it when the job has ended, with the standard library only: loading NumPy
and Arrow would cost more than the job's recording. It is converted when recordings are joined.
A line of JSON (manifest, facts of start and end, symbolic links of the node) is followed by the
compressed used part of the arena. Arguments are not redacted, so it is for its owner only.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tracehint.errors import BundleError
from tracehint.limits import limit, limit_error
from tracehint.schemas.manifest import (
    MAX_MANIFEST_BYTES,
    Manifest,
    manifest_to_json,
    parse_manifest,
)
from tracehint.schemas.plain import open_plain
from tracehint.schemas.spool.arena_links import Resolved, resolved_links
from tracehint.schemas.spool.mount_names import mounts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FORMAT = "tracehint.job/1"
_PIECE = 1 << 20
_FREE = 64 << 20  # uncompressed bytes allowed for any compressed size


@dataclass(frozen=True)
class Packed:
    """The content of such a file; `start`, `end`: start.json and end.json of a spool."""

    manifest: Manifest
    start: dict[str, Any]
    end: dict[str, Any]
    links: Resolved
    arena: NDArray[np.uint8]


def write_packed(
    out: IO[bytes],
    manifest: Manifest,
    start: dict[str, Any],
    end: dict[str, Any],
    arena: memoryview,
) -> None:
    """Write the recording; symbolic links are resolved now, on this host. Raises OSError."""
    links = resolved_links(arena, mounts_of(start))
    head = {
        "format": _FORMAT,
        "manifest": manifest_to_json(manifest),
        "start": start,
        "end": end,
        "directories": [[os.fsdecode(p), os.fsdecode(to)] for p, to in links.directories.items()],
        "files": [[os.fsdecode(p), ino, os.fsdecode(to)] for (p, ino), to in links.files.items()],
    }
    out.write(json.dumps(head).encode("ascii") + b"\n")
    pack = zlib.compressobj(zlib.Z_BEST_SPEED)
    for at in range(0, len(arena), _PIECE):
        out.write(pack.compress(arena[at : at + _PIECE]))
    out.write(pack.flush())


def read_packed(path: Path) -> Packed:
    """Read the file. Raises BundleError, InputError."""
    import numpy as np

    try:
        with os.fdopen(open_plain(path), "rb") as stream:
            head = json.loads(stream.readline(MAX_MANIFEST_BYTES))
            if not isinstance(head, dict) or head.get("format") != _FORMAT:
                raise ValueError("not written by this version of tracehint")
            data = _unpack_stream(stream, path)
        links = Resolved(
            {os.fsencode(p): os.fsencode(to) for p, to in head["directories"]},
            {(os.fsencode(p), int(ino)): os.fsencode(to) for p, ino, to in head["files"]},
        )
        start, end, manifest = head["start"], head["end"], head["manifest"]
        if not (isinstance(start, dict) and isinstance(end, dict) and isinstance(manifest, str)):
            raise ValueError("its first line is damaged")
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the job again.") from None
    facts = parse_manifest(manifest.encode(), path)
    return Packed(facts, start, end, links, np.frombuffer(data, np.uint8))


def _unpack_stream(stream: IO[bytes], path: Path) -> bytes:
    """Decompress the data after the first line. Raises ValueError, zlib.error, InputError."""
    most = max(_FREE, os.fstat(stream.fileno()).st_size * limit("unpack-ratio"))
    unpack, pieces, size = zlib.decompressobj(), list[bytes](), 0
    while piece := stream.read(_PIECE >> 4):  # it may expand a thousandfold
        pieces.append(unpack.decompress(piece))
        size += len(pieces[-1])
        if size > most:
            raise limit_error("unpack-ratio", f"{path}: unpacked")
    if not unpack.eof or unpack.unused_data:
        raise ValueError("its end is missing or damaged")
    return b"".join(pieces)
