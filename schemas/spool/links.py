"""Names of calls that led through symbolic links of the run: resolved when the loader was too late.

The loader opens the directory of each name right after the call. Under load a link can be gone
by then; the name stays as the program wrote it, and means nobody. What the loader found (it
knows an inode then) is left as it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

_MAX_LINKS = 40  # as the kernel


def through_links(
    ops: Sequence[str], inodes: Sequence[int], old: list[bytes], new: list[bytes]
) -> None:
    """Rewrite in place the names that were not found; the calls are in the order of their time.

    new: the other name of a rename or link, the target of a symlink. inodes: 0 where not found.
    """
    if "symlink" not in ops:
        return
    links: dict[bytes, bytes] = {}
    for i, op in enumerate(ops):
        if not inodes[i]:
            old[i] = resolved(old[i], links)
            new[i] = new[i] if op == "symlink" else resolved(new[i], links)
        if op == "symlink":
            links[old[i]] = new[i]
        elif op == "link" and old[i] in links:
            links[new[i]] = links[old[i]]
        elif op == "exchange":
            one, two = links.pop(old[i], None), links.pop(new[i], None)
            links.update({p: t for p, t in ((old[i], two), (new[i], one)) if t is not None})
        elif op == "unlink":
            links.pop(old[i], None)
        elif op == "rename" and old[i] in links:
            links[new[i]] = links.pop(old[i])


def resolved(path: bytes, links: dict[bytes, bytes]) -> bytes:
    """The path without the known links among its directories; a link that comes last stays."""
    for _ in range(_MAX_LINKS if links else 0):
        at = path.find(b"/", 1)
        while at > 0 and path[:at] not in links:
            at = path.find(b"/", at + 1)
        if at < 0:
            break
        target, folder = links[path[:at]], path[:at].rpartition(b"/")[0]
        path = os.path.normpath((b"" if target[:1] == b"/" else folder + b"/") + target + path[at:])
    return path
