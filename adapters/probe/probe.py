"""The probe: agents on the nodes, one process each, and the steps that record their samples."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from itertools import accumulate
from pathlib import Path
from typing import Any

from tracehint.adapters.place.hosts import Host, start_words
from tracehint.adapters.probe.jobs import measure_jobs
from tracehint.adapters.probe.measurements import ProcessorWork, Seen
from tracehint.errors import InputError

ANSWER_S = 60.0  # seconds beyond the time limit of a step
MAX_LINE = 1 << 24


@dataclass(frozen=True)
class Answer:
    """A node's reply: `seconds` in total, `times` of each file of `done` (seconds of its phases,
    bytes in, bytes out), `came` and `went`: bytes over its links, `own`, `busy`: processor seconds
    of the agent, and of the store on its machine."""

    seconds: float
    times: list[list[float]]
    came: float
    went: float
    own: float = 0.0
    busy: float = 0.0
    done: Sequence[str] = ()


@dataclass
class Agent:
    """The agent process of one node."""

    name: str
    process: subprocess.Popen[bytes]

    def send(self, asked: Mapping[str, object]) -> None:
        """Send a request. If the process has ended, `receive` reports its last output."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(json.dumps(asked).encode() + b"\n")
            self.process.stdin.flush()

    def receive(self, limit: float) -> dict[str, Any]:
        """Return the reply. Raises InputError if there is none in time, or it reports an error."""
        assert self.process.stdout is not None
        fd, line, end = self.process.stdout.fileno(), b"", time.monotonic() + limit + ANSWER_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise InputError(f"{self.name} does not answer", "Check the node and its mount.")
            part = self.process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
            line += part
            if not part or len(line) > MAX_LINE:
                self._raise_ended()
        try:
            reply = json.loads(line)
            if not isinstance(reply, dict) or not {"error", "cores", "times"} & reply.keys():
                raise ValueError("no answer of the agent")
        except ValueError:
            raise InputError(
                f"{self.name} prints {line[:100]!r}", "Its start command must not print anything."
            ) from None
        if "error" in reply:
            raise InputError(
                f"{self.name}: the measurement failed: {str(reply['error'])[:300]}",
                "Free some space, or give a smaller --size-mb.",
            )
        return reply

    def _raise_ended(self) -> None:
        self.process.kill()
        errors = self.process.stderr.read() if self.process.stderr else b""
        raise InputError(
            f"{self.name}: the probe ended: {errors.decode('utf-8', 'replace').strip()[-300:]}",
            "Check its start command in --hosts, and that python3 and the directory exist.",
        )


@dataclass(frozen=True)
class PendingRequest:
    """Nodes with a pending request, and its time limit in seconds."""

    nodes: Sequence[int]
    limit: float


@dataclass(frozen=True)
class Nodes:
    """All agents; `until`: end of the probe, by the monotonic clock; `programs`: the store's
    programs, whose processor time is measured."""

    agents: Sequence[Agent]
    until: float
    programs: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.agents)

    @property
    def left(self) -> float:
        """Remaining seconds of the probe."""
        return max(0.0, self.until - time.monotonic())

    def about(self) -> list[dict[str, Any]]:
        """Return the cores, bytes of memory, and boot id of each node."""
        for agent in self.agents:
            agent.send({"do": "about"})
        return [agent.receive(10) for agent in self.agents]

    def ask(
        self,
        wanted: Mapping[int, Sequence[str]],
        do: str,
        *,
        size: int = 0,
        streams: int = 1,
        limit: float = 10.0,
    ) -> dict[int, Answer]:
        """Run a job over names on some nodes at the same time; return their answers by node.

        After `limit` seconds a node starts no further file.
        """
        return self.answers(self.begin(wanted, do, size=size, streams=streams, limit=limit))

    def begin(
        self,
        wanted: Mapping[int, Sequence[str]],
        do: str,
        *,
        size: int = 0,
        streams: int = 1,
        limit: float = 10.0,
    ) -> PendingRequest:
        """Start as `ask` does, without waiting: other nodes can be asked meanwhile."""
        limit = min(limit, self.left)
        for node, names in wanted.items():
            self.agents[node].send(
                {
                    "do": do,
                    "names": list(names),
                    "size": size,
                    "streams": streams,
                    "limit": limit,
                    "programs": self.programs,
                }
            )
        return PendingRequest(list(wanted), limit)

    def answers(self, begun: PendingRequest) -> dict[int, Answer]:
        """Wait for the answers to a request of `begin`."""
        found = {node: self.agents[node].receive(begun.limit) for node in begun.nodes}
        return {node: _answer(reply) for node, reply in found.items()}


def _answer(reply: Mapping[str, Any]) -> Answer:
    came, went = reply["net"]
    own, busy = reply["busy"]
    return Answer(reply["seconds"], reply["times"], came, went, own, busy, reply["done"])


@contextmanager
def agents(
    hosts: Sequence[Host], directory: Path, seconds: float, programs: Sequence[str] = ()
) -> Iterator[Nodes]:
    """Start an agent on each host, in the directory. Raises InputError."""
    source = resources.files("tracehint.adapters.probe").joinpath("agent.py").read_text("utf-8")
    argv = ["python3", "-c", source, str(directory)]
    with ExitStack() as stack:
        started = []
        for host in hosts:
            try:
                process = subprocess.Popen(
                    start_words(host, argv, str(directory)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            except OSError as error:
                raise InputError(
                    f"{host.name}: cannot be reached: {error.strerror}", "Check --hosts."
                ) from None
            stack.callback(_end_agent, process)
            started.append(Agent(host.name, process))
        yield Nodes(started, time.monotonic() + seconds, programs)


def _end_agent(process: subprocess.Popen[bytes]) -> None:
    """Close the agent's streams, which ends it; kill it after 5 s."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                continue  # already closed by its end
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


SMALL = 16 << 10  # bytes of a small file, one request
CALLS, SMALL_FILES, BIG_FILES = 60, 20, 2  # per node and step
SHARED_FILES = 3  # files that are read by two readers at once
BUSY_STREAMS = 4  # streams per node when all nodes call at once
LOCAL_SHARE = 0.5  # share of a file's bytes received over the link: below it, the file is local
SATURATED_S = 0.2  # until readers of big files saturate the link
CALLS_S = 3.0  # time limit of one step of calls
_CALL_BYTES = 3000  # bytes on the link that any call needs


def measure(nodes: Nodes, size: int, *, keeps: bool = False) -> Seen:
    """Run all steps in a fixed order until the time is over; `size`: bytes of a big file; `keeps`:
    clients cache data that was read or closed, so that the steps must bypass the cache."""
    about = nodes.about()
    seen = Seen(len(nodes), min(a["cores"] for a in about), min(a["memory"] for a in about), size)
    seen.keeps, seen.machines = keeps, [str(a["machine"]) for a in about]
    for step in STEPS:
        if nodes.left < 1:
            seen.skipped.append(step.__name__.removeprefix("_"))
            continue
        step(nodes, seen)
    return seen


def _rest(nodes: Nodes, seen: Seen) -> None:
    """Measure the processor work of the store and other programs with idle agents."""
    _note_processor_work(seen, "rest", {0: _ask_one(nodes, 0, ["r0"], "rest")}, 1)


def _calls(nodes: Nodes, seen: Seen) -> None:
    """Measure the calls of one node that creates small files alone."""
    small = _ask_one(nodes, 0, _name_small_files(), seen.writing, size=SMALL)
    seen.samples["create"] += [t[0] for t in small.times]
    seen.samples["small_write"] += [sum(t[:3]) for t in small.times]


def _places(nodes: Nodes, seen: Seen) -> None:
    """Read the first node's small files on each node; no link traffic: it holds the file."""
    names = _list_small_files(seen)
    seen.laws = [[] for _ in names]
    for node in range(len(nodes)):
        for number, (opened, took, came, _) in enumerate(
            _ask_one(nodes, node, names, seen.looking, size=SMALL).times
        ):
            is_local = came < LOCAL_SHARE * SMALL + _CALL_BYTES
            seen.samples["open"].append(opened)
            seen.samples["small_read_local" if is_local else "small_read"].append(opened + took)
            if is_local:
                seen.laws[number].append(node)


def _busy_calls(nodes: Nodes, seen: Seen) -> None:
    """Measure calls per second of the store when all nodes call at once."""
    everyone = range(len(nodes))
    names = {n: [f"b{n}_{i}" for i in range(CALLS * BUSY_STREAMS)] for n in everyone}
    made = nodes.ask(names, "create", streams=BUSY_STREAMS, limit=CALLS_S)
    _record_rate(seen, "creates", made)
    _note_processor_work(seen, "calls", made, _count(made))
    turned = {n: made[(n + 1) % len(nodes)].done for n in everyone}
    opened = nodes.ask(turned, "look", streams=BUSY_STREAMS, limit=CALLS_S)
    _record_rate(seen, "opens", opened)
    calls = _count(opened)
    seen.samples["call_bytes"].append(sum(a.came for a in opened.values()) / calls)
    small = {n: _list_small_files(seen) * BUSY_STREAMS * 2 for n in everyone}
    read = nodes.ask(small, seen.looking, size=SMALL, streams=BUSY_STREAMS, limit=CALLS_S)
    _record_rate(seen, "small_reads", read)
    _note_processor_work(seen, "calls", read, _count(read))


def _writes(nodes: Nodes, seen: Seen) -> None:
    """Write big files on all nodes at once; then find the nodes that hold them."""
    names = {n: [f"w{n}_{i}" for i in range(BIG_FILES)] for n in range(len(nodes))}
    made = nodes.ask(names, seen.writing, size=seen.size, limit=nodes.left / 4)
    total = _count(made) * seen.size
    _note_processor_work(seen, "bytes", made, total)
    seen.shares.append(sum(a.came for a in made.values()) / total)
    seen.samples["write_all"] += [len(a.times) * seen.size / a.seconds for a in made.values()]
    files = [name for n, a in made.items() for name in names[n][: len(a.times)]]
    seen.where = {name: [] for name in files}
    for node in range(len(nodes)):
        times = _ask_one(nodes, node, files, seen.looking, size=SMALL).times
        for name, (_, _, came, _) in zip(files, times, strict=False):
            if came < LOCAL_SHARE * SMALL + _CALL_BYTES:
                seen.where[name].append(node)


def _measure_single_transfers(nodes: Nodes, seen: Seen) -> None:
    """Measure local and remote reads and writes, one transfer at a time."""
    for name, holders in list(seen.where.items())[::BIG_FILES]:
        for node in range(min(2, len(nodes))):
            _drop_caches(nodes, seen, {node: [name]})
            (_, took, *_), *_ = _ask_one(nodes, node, [name], "read", size=seen.size).times
            seen.samples["local" if node in holders else "remote"].append(seen.size / took)
    for number in range(4):
        (_, wrote, closed, _, went), *_ = _ask_one(
            nodes, 0, [f"s{number}"], seen.writing, size=seen.size
        ).times
        here = went < LOCAL_SHARE * seen.size
        seen.samples["local_write" if here else "remote_write"].append(seen.size / (wrote + closed))


def _link(nodes: Nodes, seen: Seen) -> None:
    """Measure links: one node reads from all others, all others from one, and in a ring."""
    for node in range(min(2, len(nodes))):
        others = [name for name, who in seen.where.items() if who and node not in who]
        if others:
            _drop_caches(nodes, seen, {node: others})
            got = _ask_one(nodes, node, others, "read", size=seen.size, streams=len(others))
            seen.samples["link_in"].append(got.came / got.seconds)
            _note_processor_work(seen, "bytes", {node: got}, len(others) * seen.size)
            seen.samples["efficiency"].append(len(others) * seen.size / got.came)
        held = [name for name, who in seen.where.items() if who == [node]]
        readers = {n: held for n in range(len(nodes)) if n != node}
        if held and readers:
            _drop_caches(nodes, seen, {node - 1: held})
            # its own agent is idle: the receivers count the bytes that it sends
            answers = nodes.ask(readers, "read", size=seen.size, streams=len(held), limit=20)
            came = sum(a.came for a in answers.values())
            seen.samples["link_out"].append(came / max(a.seconds for a in answers.values()))
    ring = _choose_ring(seen)
    if len(ring) > 1:
        _drop_caches(nodes, seen, {n: [f] for n, f in ring.items()})
        answers = nodes.ask({n: [f] for n, f in ring.items()}, "read", size=seen.size)
        _note_processor_work(seen, "bytes", answers, len(ring) * seen.size)
        seen.samples["ring"] += [a.came / a.seconds for a in answers.values()]


def _full(nodes: Nodes, seen: Seen) -> None:
    """Measure calls of a node while all others read from it: their wait behind data."""
    alone = seen.samples["create"]
    for node in range(len(nodes)):
        held = [name for name, who in seen.where.items() if who == [node]]
        readers = {n: held for n in range(len(nodes)) if n != node}
        if not (held and readers and alone):
            continue
        _drop_caches(nodes, seen, {node - 1: held})
        begun = nodes.begin(readers, "read", size=seen.size, streams=len(held), limit=20)
        names = [f"p{node}_{i}" for i in range(SMALL_FILES)]
        took = [t[0] for t in _ask_one(nodes, node, names, "create").times]
        ends = min(a.seconds for a in nodes.answers(begun).values())
        done = zip(took, accumulate(took), strict=True)  # duration and end
        full = [t for t, at in done if at - t > SATURATED_S and at < ends]
        seen.samples["create_full"] += full
        if len(seen.samples["create_full"]) >= SMALL_FILES:
            return


def _read_same_file(nodes: Nodes, seen: Seen) -> None:
    """Measure the bytes received twice by two concurrent readers of a file on one node."""
    away = [name for name, who in seen.where.items() if who and 0 not in who]
    for name in away[:SHARED_FILES]:
        _drop_caches(nodes, seen, {0: [name]})
        got = _ask_one(nodes, 0, [name, name], "read", size=seen.size, streams=2)
        seen.samples["read_ahead"].append(max(0.0, got.came - seen.size))


def _local(nodes: Nodes, seen: Seen) -> None:
    """Measure local reads of all nodes at once, and one node's write that ends with a sync."""
    own = {n: [f for f, who in seen.where.items() if n in who][:1] for n in range(len(nodes))}
    own = {n: names for n, names in own.items() if names}
    _drop_caches(nodes, seen, own)
    answers = nodes.ask(own, "read", size=seen.size)
    _note_processor_work(seen, "bytes", answers, len(own) * seen.size)
    seen.samples["local_all"] += [seen.size / a.times[0][1] for a in answers.values()]
    if not seen.keeps:  # else every write was synced
        (took, *_), *_ = _ask_one(nodes, 0, ["d"], "synced", size=seen.size).times
        seen.samples["synced"].append(seen.size / took)


STEPS: tuple[Callable[[Nodes, Seen], None], ...] = (
    _rest,
    _calls,
    _places,
    _busy_calls,
    _writes,
    _measure_single_transfers,
    _link,
    _full,
    _read_same_file,
    _local,
    _rest,
)


def _name_small_files() -> list[str]:
    return [f"f{i}" for i in range(SMALL_FILES)]


def _list_small_files(seen: Seen) -> list[str]:
    """Return the names of the small files that `_calls` created in its time."""
    return _name_small_files()[: len(seen.samples["small_write"])]


def _ask_one(
    nodes: Nodes, node: int, names: Sequence[str], do: str, *, size: int = 0, streams: int = 1
) -> Answer:
    limit = CALLS_S if size <= SMALL else 20.0
    return nodes.ask({node: names}, do, size=size, streams=streams, limit=limit)[node]


def _drop_caches(nodes: Nodes, seen: Seen, wanted: Mapping[int, Sequence[str]]) -> None:
    """Rewrite files on the next node before a node reads them, so that no client caches them."""
    if not seen.keeps or len(nodes) < 2:
        return
    for node, names in wanted.items():
        _ask_one(nodes, (node + 1) % len(nodes), names, "renew")


def _count(answers: Mapping[int, Answer]) -> int:
    return sum(len(a.times) for a in answers.values())


def _note_processor_work(
    seen: Seen, what: str, answers: Mapping[int, Answer], amount: float
) -> None:
    """Record work as the slowest node saw it: on a shared machine it saw all of the store's."""
    if not answers:
        return
    longest = max(answers.values(), key=lambda a: a.seconds)
    over = sum(a.came for a in answers.values())
    busy = longest.busy + sum(a.own for a in answers.values())
    seen.work[what].append(ProcessorWork(busy, longest.seconds, amount, over))


def _record_rate(seen: Seen, name: str, answers: Mapping[int, Answer]) -> None:
    seen.samples[name].append(_count(answers) / max(a.seconds for a in answers.values()))


def _choose_ring(seen: Seen) -> dict[int, str]:
    """Choose for each node a file of another node; no two nodes read from the same one."""
    found: dict[int, str] = {}
    taken: set[int] = set()
    for node in range(seen.nodes):
        for name, who in seen.where.items():
            if len(who) == 1 and node not in who and who[0] not in taken:
                found[node] = name
                taken.add(who[0])
                break
    return found


MAX_NODES, MAX_SECONDS = 5, 180.0


# Stores whose clients have their own cache: it serves reads regardless of posix_fadvise, and holds
# written data after the file is closed.
CACHING_STORES = frozenset({"cephfs"})
# Programs of a store on its machines, besides the kernel.
PROGRAMS = {
    "cephfs": ("ceph-osd", "ceph-mds", "ceph-mon", "ceph-fuse"),
    "moosefs": ("mfschunkserver", "mfsmaster", "mfsmount"),
}


def probe(
    directory: Path, hosts: Sequence[Host], *, seconds: float, size: int, store: str | None = None
) -> Seen:
    """Measure with at most MAX_NODES of the hosts for at most MAX_SECONDS, in a temporary directory
    on the store. Raises InputError."""
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", "Name a directory on the store.")
    try:
        work = Path(tempfile.mkdtemp(prefix=".tracehint-calibrate-", dir=directory.resolve()))
    except OSError as error:
        raise InputError(
            f"cannot write in {directory}: {error.strerror}", "Name one that you may write to."
        ) from error
    try:
        programs = PROGRAMS.get(store or "", ())
        with agents(hosts[:MAX_NODES], work, min(seconds, MAX_SECONDS), programs) as nodes:
            seen = measure(nodes, size, keeps=store in CACHING_STORES)
        measure_jobs(seen, work, [host.name for host in hosts])
        return seen
    finally:
        shutil.rmtree(work, ignore_errors=True)
