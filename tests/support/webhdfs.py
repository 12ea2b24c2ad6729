"""A client of HDFS without other programs: its REST interface, from a node's own network."""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.support.bed import HEAD

PORT, TIMEOUT_S = 9870, 120
CLONE_NEWNET = 0x40000000
BLOCK = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)


def enter(space: str) -> None:
    """Move this thread into a network namespace; other threads stay in theirs."""
    fd = os.open(Path("/run/netns") / space, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _LIBC.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {space}")
    finally:
        os.close(fd)


def create(path: str, size: int, chunks: Iterable[bytes], **options: int) -> None:
    """Write a file; `options`: replication, blocksize."""
    where = _ask("PUT", path, "CREATE", {"overwrite": "true", **options})
    target = urlsplit(where.getheader("Location", ""))
    connection = _connect(target.hostname or "", target.port or 0)
    try:
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        connection.request("PUT", f"{target.path}?{target.query}", chunks, headers)
        _checked(connection.getresponse(), path, 201)
    finally:
        connection.close()


def read(path: str, start: int, length: int) -> int:
    """Return the checksum of a range. Raises ValueError if the file is shorter."""
    where = _ask("GET", path, "OPEN", {"offset": start, "length": length})
    target = urlsplit(where.getheader("Location", ""))
    connection = _connect(target.hostname or "", target.port or 0)
    found = seen = 0
    try:
        connection.request("GET", f"{target.path}?{target.query}")
        answer = _checked(connection.getresponse(), path, 200)
        while data := answer.read(BLOCK):
            found, seen = zlib.crc32(data, found), seen + len(data)
    finally:
        connection.close()
    if seen != length:
        raise ValueError(f"{path}: {seen} bytes from {start}, not {length}")
    return found


def hosts(path: str) -> list[list[str]]:
    """Return the nodes of each block."""
    body = _ask("GET", path, "GETFILEBLOCKLOCATIONS", {}, 200).read()
    blocks: list[Mapping[str, Any]] = json.loads(body)["BlockLocations"]["BlockLocation"]
    return [[name.rpartition(":")[0] for name in block["names"]] for block in blocks]


def remove(path: str) -> None:
    """Remove a directory with everything in it."""
    _ask("DELETE", path, "DELETE", {"recursive": "true"}, 200)


def _ask(
    verb: str, path: str, op: str, more: Mapping[str, object], wanted: int = 307
) -> http.client.HTTPResponse:
    """Call the namenode and return its response, with the body unread."""
    connection = _connect(HEAD, PORT)
    query = urlencode({"op": op, "user.name": "root", **more})
    connection.request(verb, f"/webhdfs/v1{quote(path)}?{query}")
    return _checked(connection.getresponse(), path, wanted)


def _connect(host: str, port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)


def _checked(answer: http.client.HTTPResponse, path: str, wanted: int) -> http.client.HTTPResponse:
    if answer.status != wanted:
        raise OSError(f"{path}: {answer.status} {answer.read(500).decode(errors='replace')}")
    return answer


def within(space: str, work: Any, *words: Any) -> Any:
    """Run a function in a network namespace; return its result or raise its error."""
    found: list[Any] = []

    def run() -> None:
        try:
            enter(space)
            found.append((work(*words), None))
        except Exception as error:
            found.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = found[0]
    if error:
        raise error
    return result
