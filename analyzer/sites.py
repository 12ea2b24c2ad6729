"""Sites or racks: their hosts, and the traffic between them.

A table of sites is text, one line per host or pattern of hosts (`*`, `?`, `[...]` as in a shell)
and its site; the first matching line wins. Empty lines and text after `#` are ignored.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.manifest import Manifest

Sites = tuple[tuple[str, str], ...]  # pattern of a host name, site

MAX_BYTES, MAX_LINES = 16 << 20, 1_000_000
_NAME = re.compile(r"[^\s#\x00-\x1f\x7f]{1,255}")


def read_sites(path: Path) -> Sites:
    """Read a table of sites. Raises InputError: unreadable, too large, or a line is not a pair."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        text = raw.decode("utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", "Name a table of hosts and their sites."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text", "Write one `host site` per line.") from None
    lines = text.splitlines()
    if len(raw) > MAX_BYTES or len(lines) > MAX_LINES:
        raise InputError(f"{path}: is too large", "Use patterns: `rack1-* rack1`.")
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not all(_NAME.fullmatch(word) for word in words):
            raise InputError(
                f"{path}, line {number}: not a host and its site: {line[:80]!r}",
                "Write two words per line: `node1* rack1`.",
            )
        found.append((words[0], words[1]))
    return tuple(found)


def assign(manifest: Manifest, sites: Sites) -> Manifest:
    """Return the manifest with the sites of the table; hosts without a matching line keep theirs.

    Raises InputError if the table matches no host at all.
    """
    if not sites or not manifest.hosts:
        return manifest
    exact = {host: site for host, site in reversed(sites) if not set(host) & set("*?[")}
    patterns = [(p, site) for p, site in sites if set(p) & set("*?[")]

    def site_of(name: str) -> str | None:
        if name in exact:
            return exact[name]
        return next((site for p, site in patterns if fnmatchcase(name, p)), None)

    known = {host.name: site_of(host.name) for host in manifest.hosts}
    if not any(known.values()):
        raise InputError(
            f"the table of sites names none of the hosts {', '.join(list(known)[:5])}",
            "Use the names of `run.hosts` in the output of `analyze --format json`.",
        )
    hosts = [dataclasses.replace(h, site=known[h.name] or h.site) for h in manifest.hosts]
    return dataclasses.replace(manifest, hosts=hosts)


def hosts_by_site(manifest: Manifest) -> dict[str, int]:
    """Return the number of hosts of each site; empty if there are fewer than two sites."""
    count = Counter(h.site for h in manifest.hosts if h.site)
    return dict(sorted(count.items())) if len(count) > 1 else {}


def crossing_probability(hosts: Mapping[str, int], nodes: int) -> float:
    """Return the probability that two different nodes of `nodes` are at different sites.

    The nodes are distributed over the sites in proportion to the hosts of the run.
    """
    total = sum(hosts.values())
    if len(hosts) < 2 or nodes < 2:
        return 0.0
    same = sum(h / total * max(0.0, nodes * h / total - 1) / (nodes - 1) for h in hosts.values())
    return max(0.0, 1 - same)


def bytes_between(tasks: pa.Table, edges: pa.Table) -> int:
    """Return the bytes that tasks read from tasks at another site; unknown sites do not count."""
    import numpy as np

    number = tasks.column("task").to_numpy()
    order = np.argsort(number)
    names = tasks.column("site").combine_chunks().dictionary_encode()
    known = np.array([bool(name) for name in names.dictionary.to_pylist()] + [False])
    code = names.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)[order]
    ends: Sequence[np.ndarray] = [
        code[np.searchsorted(number[order], edges.column(end).to_numpy())]
        for end in ("producer", "consumer")
    ]
    across = (ends[0] != ends[1]) & known[ends[0]] & known[ends[1]]
    return int(edges.column("bytes").to_numpy()[across].sum())
