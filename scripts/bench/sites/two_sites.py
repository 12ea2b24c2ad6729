"""Some nodes of a bed at another site: a second bridge behind one shaped link."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.support.bed import Bed


@contextmanager
def apart(bed: Bed, far: Sequence[str], rate: str) -> Iterator[Callable[[], int]]:
    """The nodes with these labels behind a link of this rate each way; gives what tells the bytes
    that crossed it so far, both ways. The head is at the first site."""

    def ip(*words: str) -> str:
        done = ["ip", "-n", bed.space, *words]
        return subprocess.run(done, check=True, capture_output=True, text=True).stdout

    ip("link", "add", "br1", "type", "bridge")
    ip("link", "add", "wan0", "type", "veth", "peer", "name", "wan1")
    try:
        for link, bridge in (("wan0", "br0"), ("wan1", "br1")):
            ip("link", "set", link, "master", bridge, "up")
            shape = ["root", "tbf", "rate", rate, "burst", "256k", "latency", "50ms"]
            subprocess.run(
                ["ip", "netns", "exec", bed.space, "tc", "qdisc", "add", "dev", link, *shape],
                check=True,
                capture_output=True,
            )
        ip("link", "set", "br1", "up")
        for label in far:
            ip("link", "set", f"v{label}", "master", "br1")
        yield lambda: _both_ways(ip("-s", "-j", "link", "show", "wan0"))
    finally:
        for label in far:
            ip("link", "set", f"v{label}", "master", "br0")
        ip("link", "del", "wan0")
        ip("link", "del", "br1")


def _both_ways(shown: str) -> int:
    counts = json.loads(shown)[0]["stats64"]
    return int(counts["rx"]["bytes"]) + int(counts["tx"]["bytes"])
