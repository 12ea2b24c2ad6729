"""The agents of a probe: one process a node, asked one at a time or all at once."""

from __future__ import annotations

import json
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tracehint.adapters.place.hosts import Host, start_words
from tracehint.errors import InputError

ANSWER_S = 60.0  # beyond the time that a step was given
MAX_LINE = 1 << 24


@dataclass(frozen=True)
class Answer:
    """What a node did: `seconds` of the whole, `times` of each file of `done` (seconds of its
    parts, bytes in, bytes out), `came` and `went`: bytes over its links, `own`, `busy`: seconds of
    processors of the agent, and of the store on its machine."""

    seconds: float
    times: list[list[float]]
    came: float
    went: float
    own: float = 0.0
    busy: float = 0.0
    done: Sequence[str] = ()


@dataclass
class Agent:
    """One node."""

    name: str
    process: subprocess.Popen[bytes]

    def send(self, asked: Mapping[str, object]) -> None:
        """Ask. Of a process that has ended `receive` tells what it said before."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(json.dumps(asked).encode() + b"\n")
            self.process.stdin.flush()

    def receive(self, limit: float) -> dict[str, Any]:
        """The answer. Raises InputError when there is none in time, or one that tells an error."""
        assert self.process.stdout is not None
        fd, line, end = self.process.stdout.fileno(), b"", time.monotonic() + limit + ANSWER_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise InputError(f"{self.name} does not answer", "Check the node and its mount.")
            part = self.process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
            line += part
            if not part or len(line) > MAX_LINE:
                self._gone()
        try:
            said = json.loads(line)
            if not isinstance(said, dict) or not {"error", "cores", "times"} & said.keys():
                raise ValueError("no answer of the agent")
        except ValueError:
            raise InputError(
                f"{self.name} says {line[:100]!r}", "Its start command must print nothing itself."
            ) from None
        if "error" in said:
            raise InputError(
                f"{self.name}: measuring failed: {str(said['error'])[:300]}",
                "Free some space, or give a smaller --size-mb.",
            )
        return said

    def _gone(self) -> None:
        self.process.kill()
        said = self.process.stderr.read() if self.process.stderr else b""
        raise InputError(
            f"{self.name}: the probe ended: {said.decode('utf-8', 'replace').strip()[-300:]}",
            "Check its start command in --hosts, and that python3 and the directory are there.",
        )


@dataclass(frozen=True)
class Begun:
    """Nodes that are at work, for at most so many seconds."""

    nodes: Sequence[int]
    limit: float


@dataclass(frozen=True)
class Nodes:
    """All agents; `until`: when the probe has to end, by the monotonic clock;
    `programs` of the store, whose processor time is measured."""

    agents: Sequence[Agent]
    until: float
    programs: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.agents)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.until - time.monotonic())

    def about(self) -> list[dict[str, Any]]:
        """Cores and bytes of memory of each node."""
        for agent in self.agents:
            agent.send({"do": "about"})
        return [agent.receive(10) for agent in self.agents]

    def ask(
        self, wanted: Mapping[int, Sequence[str]], do: str, *, size: int = 0, streams: int = 1,
        limit: float = 10.0,
    ) -> dict[int, Answer]:  # fmt: skip  # a table
        """Let some nodes do something with names at the same time; their answers by node.

        After `limit` seconds a node begins no further file.
        """
        return self.answers(self.begin(wanted, do, size=size, streams=streams, limit=limit))

    def begin(
        self, wanted: Mapping[int, Sequence[str]], do: str, *, size: int = 0, streams: int = 1,
        limit: float = 10.0,
    ) -> Begun:  # fmt: skip  # a table
        """As `ask`, without waiting: other nodes can be asked meanwhile."""
        limit = min(limit, self.left)
        for node, names in wanted.items():
            self.agents[node].send(
                {"do": do, "names": list(names), "size": size, "streams": streams, "limit": limit,
                 "programs": self.programs}
            )  # fmt: skip  # a table
        return Begun(list(wanted), limit)

    def answers(self, begun: Begun) -> dict[int, Answer]:
        """What nodes say that were asked before."""
        found = {node: self.agents[node].receive(begun.limit) for node in begun.nodes}
        return {node: _answer(said) for node, said in found.items()}


def _answer(said: Mapping[str, Any]) -> Answer:
    came, went = said["net"]
    own, busy = said["busy"]
    return Answer(said["seconds"], said["times"], came, went, own, busy, said["done"])


@contextmanager
def agents(
    hosts: Sequence[Host], directory: Path, seconds: float, programs: Sequence[str] = ()
) -> Iterator[Nodes]:
    """An agent on each host, at work in the directory. Raises InputError."""
    source = resources.files("tracehint.adapters.probe").joinpath("agent.py").read_text("utf-8")
    argv = ["python3", "-c", source, str(directory)]
    with ExitStack() as stack:
        started = []
        for host in hosts:
            try:
                process = subprocess.Popen(
                    start_words(host, argv, str(directory)),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )  # fmt: skip  # a table
            except OSError as error:
                raise InputError(
                    f"{host.name}: cannot be reached: {error.strerror}", "Check --hosts."
                ) from None
            stack.callback(_end, process)
            started.append(Agent(host.name, process))
        yield Nodes(started, time.monotonic() + seconds, programs)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its input, which ends it; after a while end it for it."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                continue  # it is gone already
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
