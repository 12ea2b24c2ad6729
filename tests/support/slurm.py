"""A small real Slurm on this machine: a controller and nodes, each with its own host name.

    with cluster(("node1", "node2")) as slurm:
        job = slurm.sbatch("--array=1-3", "job.sh", cwd=work)
        slurm.wait()

All its files are in a folder below /tmp (other users must reach munge's socket), all ports are free
ones on the loopback interface; an installed Slurm is not touched. Host names come from UTS
namespaces. Needs root and Debian's slurm-wlm and munge; `missing()` names missing requirements.
Shutdown: see reaper.py.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.bed import HEAD, Node
from tests.support.needs import missing_for
from tests.support.shaped import MooseBed, on_node

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "unshare")
_CONF = """ClusterName=tracehint
SlurmctldHost=head({head})
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={requeue_s}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
KillWait=2
Prolog={folder}/prolog
Epilog={folder}/epilog
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""
_FIRST_NODE = 2  # index of the first node's daemon, after munge's and the controller's
_NODE = (
    "NodeName={name} NodeHostname={name} NodeAddr={address} Port={port} CPUs={cpus} "
    "RealMemory=4000\n"
)

# As cgroups do on a real node: no process of a job outlives it.
_NOTHING_LEFT = """#!{python} -ES
import os, pathlib, signal
marks = {{b"SLURM_CONF={folder}/slurm.conf", b"SLURM_JOB_ID=" + os.environb[b"SLURM_JOB_ID"]}}
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = set((process / "environ").read_bytes().split(b"\\0"))
        if marks <= words and not any(w.startswith(b"SLURM_SCRIPT_CONTEXT=") for w in words):
            os.kill(int(process.name), signal.SIGKILL)
    except OSError:
        pass
"""


def missing() -> str:
    """Return the missing requirements; empty if a cluster can run."""
    return missing_for(TOOLS)


@dataclass(frozen=True)
class Place:
    """Location of a host: its address, and the words that start a command there."""

    address: str = "127.0.0.1"
    words: Sequence[str] = ()


def places_on(bed: MooseBed, nodes: Sequence[Node]) -> dict[str, Place]:
    """Return nodes of a bed with their networks and mounts of the store at the head's path."""
    found = {n.label: Place(n.address, on_node(bed.mount, n)[:-1]) for n in nodes}
    return found | {"head": Place(HEAD, [str(word) for word in bed.command()])}


@dataclass(frozen=True)
class Cluster:
    """A running cluster: `env` is the environment for its commands, `words` start them on the
    head."""

    folder: Path
    env: dict[str, str]
    words: Sequence[str]
    nodes: Sequence[str]
    reaper: subprocess.Popen[bytes]

    def run(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] = {},
        timeout: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that can connect to this cluster; it must end with 0.

        env: additional variables; jobs inherit them.
        """
        words = [*self.words, *(os.fspath(c) for c in command)]
        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                env={**self.env, **env},
                text=True,
                capture_output=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stderr or b"").decode("utf-8", "replace")
            raise AssertionError(
                f"no end after {timeout} s: {words}\n{said}{self.logs()}"
            ) from None
        assert not done.returncode, f"{done.args}\n{done.stdout}\n{done.stderr}{self.logs()}"
        return done

    def sbatch(self, *arguments: str | Path, cwd: Path, env: Mapping[str, str] = {}) -> int:
        """Submit a script; return the number of its job."""
        done = self.run("sbatch", "--parsable", *arguments, cwd=cwd, env=env)
        return int(done.stdout.split(";")[0])

    def wait(self, timeout: float = 600) -> None:
        """Wait until no job is pending, running or ending; fail if a job can never start."""
        for _ in range(int(timeout / 0.2)):
            queue = self.run("squeue", "--noheader", "--format=%i %T %r").stdout
            assert "DependencyNeverSatisfied" not in queue, queue
            if not queue.strip():
                return
            time.sleep(0.2)
        raise AssertionError(f"jobs did not end:\n{queue}{self.logs()}")

    def start_again(self, node: str) -> None:
        """Restart the daemon of a node on which everything was killed."""
        assert self.reaper.stdin
        # Slurm may not have noticed yet; a node marked down is in service when its daemon registers
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")
        self.reaper.stdin.write(b"%d\n" % (_FIRST_NODE + self.nodes.index(node)))
        self.reaper.stdin.flush()
        _wait_for_nodes(self)

    def state(self, job: str) -> str:
        """Return COMPLETED, FAILED, CANCELLED, TIMEOUT ... of a job that ended recently."""
        text = self.run("scontrol", "--oneliner", "show", "job", job).stdout
        return text.partition("JobState=")[2].split()[0]

    def logs(self) -> str:
        """Return queue, nodes, processes and the ends of the daemons' logs, for error messages."""
        text = ""
        for command in (
            ["squeue", "--format=%i %j %T %r %N"],
            ["sinfo", "--Node", "--format=%N %t %E"],
            ["ps", "-eo", "pid,ppid,stat,etimes,wchan:20,args", "--forest"],
        ):
            with suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    [*self.words, *command],
                    env=self.env,
                    text=True,
                    capture_output=True,
                    timeout=60,
                )
                text += f"\n--- {command[0]}\n{done.stdout}{done.stderr}"
        return text + "".join(
            f"\n--- {log.name}\n{log.read_text(errors='replace')[-2000:]}"
            for log in sorted(self.folder.glob("*.log"))
        )


@dataclass(frozen=True)
class Site:
    """A cluster whose nodes share a store."""

    bed: MooseBed
    slurm: Cluster


@contextmanager
def cluster(
    nodes: Sequence[str] = ("node1",),
    prolog: str = "",
    epilog: str = "",
    scratch: bool = False,
    places: Mapping[str, Place] = {},
    requeue_s: int = 120,
) -> Iterator[Cluster]:
    """Start everything, wait until all nodes are idle, and end everything.

    prolog, epilog: shell scripts that the nodes run as root before and after each job.
    scratch: FOLDER/local is a separate directory on each node, FOLDER/local-NODE of this machine.
    places: of nodes and of "head", if they have their own networks.
    requeue_s: delay before a requeued job starts again, and time limit of a start.
    """
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    where = {name: places.get(name, Place()) for name in ("head", *nodes)}
    conf = _configure(folder, nodes, prolog, epilog, where, requeue_s)
    daemons = _daemons(folder, conf, nodes, scratch, where)
    (folder / "commands.json").write_text(json.dumps(daemons))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))}
    env["SLURM_CONF"] = str(conf)
    with (folder / "daemons.log").open("wb") as log:
        reaper = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("reaper.py"), folder],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=env,
        )
    try:
        started = Cluster(folder, env, where["head"].words, nodes, reaper)
        _wait_for_nodes(started)
        yield started
    finally:
        assert reaper.stdin
        reaper.stdin.close()
        reaper.wait(timeout=300)


def _configure(
    folder: Path,
    nodes: Sequence[str],
    prolog: str,
    epilog: str,
    where: Mapping[str, Place],
    requeue_s: int,
) -> Path:
    folder.chmod(0o755)
    (folder / "state").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    scripts = {
        "prolog": f"#!/bin/sh\n{prolog}\n",
        "epilog": f"#!/bin/sh\n{epilog}\nexec {folder}/nothing-left\n",
        "nothing-left": _NOTHING_LEFT.format(python=sys.executable, folder=folder),
    }
    for name, script in scripts.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    ports = _free_ports(1 + len(nodes))
    head = where["head"].address
    text = _CONF.format(folder=folder, ports=ports, head=head, requeue_s=requeue_s)
    cpus = os.cpu_count() or 1
    for name, port in zip(nodes, ports[1:], strict=True):
        (folder / f"spool-{name}").mkdir()
        text += _NODE.format(name=name, address=where[name].address, port=port, cpus=cpus)
    conf = folder / "slurm.conf"
    conf.write_text(text)
    return conf


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _daemons(
    folder: Path, conf: Path, nodes: Sequence[str], scratch: bool, where: Mapping[str, Place]
) -> list[list[str]]:
    """Return one foreground command per daemon; those of the nodes from _FIRST_NODE on."""
    munged = [
        "munged",
        "--foreground",
        f"--key-file={folder}/munge.key",
        f"--socket={folder}/munge.socket",
        f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log",
        f"--seed-file={folder}/munge.seed",
    ]
    return [
        munged,
        [*where["head"].words, *_on("head", folder, "slurmctld", "-D", "-i", "-f", str(conf))],
        *(
            [
                *where[name].words,
                *_on(name, folder, *_own(name, folder, scratch), "slurmd", "-D", "-f", str(conf)),
            ]
            for name in nodes
        ),
    ]


def _own(name: str, folder: Path, scratch: bool) -> list[str]:
    """Return words that mount a node's own directory at a path that all nodes use."""
    if not scratch:
        return []
    for path in (folder / f"local-{name}", folder / "local"):
        path.mkdir(exist_ok=True, mode=0o777)
    bind = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", bind, f"{folder}/local-{name}", f"{folder}/local"]


def _on(host: str, folder: Path, *command: str) -> list[str]:
    """Return a command that runs under a host name once munge's socket exists."""
    script = 'hostname "$0" && while [ ! -S "$1" ]; do sleep 0.05; done && shift && exec "$@"'
    return ["unshare", "--uts", "sh", "-c", script, host, f"{folder}/munge.socket", *command]


def _wait_for_nodes(started: Cluster) -> None:
    states = ""
    for _ in range(600):
        # sinfo waits long for a controller that has not started
        with suppress(subprocess.TimeoutExpired):
            states = subprocess.run(
                [*started.words, "sinfo", "--noheader", "--Node", "--format=%t"],
                env=started.env,
                capture_output=True,
                text=True,
                timeout=20,
            ).stdout
            if states.split() == ["idle"] * len(started.nodes):
                return
        time.sleep(0.2)
    raise AssertionError(f"the nodes did not come up: {states}{started.logs()}")
