"""Redis servers as registries, one per site, and clients that are a journey away from them."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

LOOKUP_S, UPDATE_S = 0.002, 0.002  # a registry is busy for so long with one operation


class Registry:
    """One connection to the registry of a site; `away` seconds one way."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, away: float
    ) -> None:
        self.reader, self.writer, self.away = reader, writer, away

    async def ask(self, busy: float, *commands: Sequence[bytes]) -> list[object]:
        """Do the commands as one, the registry being busy for that long; their answers."""
        await asyncio.sleep(self.away)
        sleep = [b"DEBUG", b"SLEEP", b"%f" % busy]
        parts = [[b"MULTI"], *commands, sleep, [b"EXEC"]]
        self.writer.write(b"".join(map(_command, parts)))
        answers = [await self._answer() for _ in parts]
        await asyncio.sleep(self.away)
        found = answers[-1]
        assert isinstance(found, list), found
        return found[:-1]

    async def _answer(self) -> object:
        line = await self.reader.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [await self._answer() for _ in range(int(rest))]
        if kind == b"$":
            if int(rest) < 0:
                return None
            return (await self.reader.readexactly(int(rest) + 2))[:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return rest


def _command(words: Sequence[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


@contextlib.asynccontextmanager
async def registries(folder: Path, count: int) -> AsyncIterator[list[Path]]:
    """Sockets of so many empty servers, which are gone afterwards."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not there: make setup-full")
    sockets = [folder / f"registry{i}" for i in range(count)]
    servers = []
    try:
        for socket in sockets:
            options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
            options += ["--enable-debug-command", "yes", "--daemonize", "no"]
            servers.append(subprocess.Popen([program, *options], stdout=subprocess.DEVNULL))
        for socket in sockets:
            for _ in range(200):
                if socket.exists():
                    break
                await asyncio.sleep(0.05)
        yield sockets
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


async def connect(socket: Path, away: float) -> Registry:
    """A connection of a client that is so far away, in seconds one way."""
    reader, writer = await asyncio.open_unix_connection(str(socket))
    return Registry(reader, writer, away)
