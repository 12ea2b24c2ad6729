"""A small real Slurm on this machine: a controller and nodes, each with a host name of its own.

    with cluster(("node1", "node2")) as slurm:
        job = slurm.sbatch("--array=1-3", "job.sh", cwd=work)
        slurm.wait()

All its files lie in a folder below /tmp (others must reach munge's socket), all ports are free ones
on the loopback interface; a Slurm that the machine has is not touched. Host names come from UTS
name spaces. Needs root and Debian's slurm-wlm and munge; `missing()` names what is not there. How
everything ends: see reaper.py.
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

from tests.support.needs import missing_for

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "unshare")
_CONF = """ClusterName=tracehint
SlurmctldHost=head(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
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
_NODE = (
    "NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} "
    "RealMemory=4000\n"
)

# What cgroups do on a real node: nothing of a job outlives it.
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
    """What is needed and not there; empty: a cluster can run."""
    return missing_for(TOOLS)


@dataclass(frozen=True)
class Cluster:
    """A running cluster: `env` is what its commands need in their environment."""

    folder: Path
    env: dict[str, str]

    def run(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] = {},
        timeout: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that can speak to this cluster; it must end with 0.

        env: what is set besides; jobs inherit it.
        """
        done = subprocess.run(
            [os.fspath(c) for c in command],
            cwd=cwd,
            env={**self.env, **env},
            text=True,
            capture_output=True,
            timeout=timeout,
        )
        assert not done.returncode, f"{done.args}\n{done.stdout}\n{done.stderr}{self.logs()}"
        return done

    def sbatch(self, *arguments: str | Path, cwd: Path, env: Mapping[str, str] = {}) -> int:
        """Submit a script; the number of its job."""
        done = self.run("sbatch", "--parsable", *arguments, cwd=cwd, env=env)
        return int(done.stdout.split(";")[0])

    def wait(self, timeout: float = 600) -> None:
        """Until no job waits, runs or ends; a job that can never start is an error."""
        for _ in range(int(timeout / 0.2)):
            queue = self.run("squeue", "--noheader", "--format=%i %T %r").stdout
            assert "DependencyNeverSatisfied" not in queue, queue
            if not queue.strip():
                return
            time.sleep(0.2)
        raise AssertionError(f"jobs did not end:\n{queue}{self.logs()}")

    def state(self, job: str) -> str:
        """COMPLETED, FAILED, CANCELLED, TIMEOUT ... of a job that ended lately."""
        text = self.run("scontrol", "--oneliner", "show", "job", job).stdout
        return text.partition("JobState=")[2].split()[0]

    def logs(self) -> str:
        """The ends of the daemons' logs, for a failure's message."""
        return "".join(
            f"\n--- {log.name}\n{log.read_text(errors='replace')[-2000:]}"
            for log in sorted(self.folder.glob("*.log"))
        )


@contextmanager
def cluster(
    nodes: Sequence[str] = ("node1",), prolog: str = "", epilog: str = "", scratch: bool = False
) -> Iterator[Cluster]:
    """Start everything, wait until all nodes are idle, and end everything.

    prolog, epilog: shell scripts that the nodes run as root before and after each job.
    scratch: FOLDER/local is another directory on each node: FOLDER/local-NODE of this machine.
    """
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    conf = _configure(folder, nodes, prolog, epilog)
    (folder / "commands.json").write_text(json.dumps(_daemons(folder, conf, nodes, scratch)))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))}
    started = Cluster(folder, env | {"SLURM_CONF": str(conf)})
    with (folder / "daemons.log").open("wb") as log:
        reaper = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("reaper.py"), folder],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=started.env,
        )
    try:
        _wait_for_nodes(started, len(nodes))
        yield started
    finally:
        assert reaper.stdin
        reaper.stdin.close()
        reaper.wait(timeout=300)


def _configure(folder: Path, nodes: Sequence[str], prolog: str, epilog: str) -> Path:
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
    text = _CONF.format(folder=folder, ports=ports)
    cpus = os.cpu_count() or 1
    for name, port in zip(nodes, ports[1:], strict=True):
        (folder / f"spool-{name}").mkdir()
        text += _NODE.format(name=name, port=port, cpus=cpus)
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
    folder: Path, conf: Path, nodes: Sequence[str], scratch: bool = False
) -> list[list[str]]:
    """One command each, in the foreground."""
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
        _on("head", folder, "slurmctld", "-D", "-i", "-f", str(conf)),
        *(
            _on(name, folder, *_own(name, folder, scratch), "slurmd", "-D", "-f", str(conf))
            for name in nodes
        ),
    ]


def _own(name: str, folder: Path, scratch: bool) -> list[str]:
    """What gives a node a directory of its own at a place where the others have theirs."""
    if not scratch:
        return []
    for path in (folder / f"local-{name}", folder / "local"):
        path.mkdir(exist_ok=True, mode=0o777)
    bind = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", bind, f"{folder}/local-{name}", f"{folder}/local"]


def _on(host: str, folder: Path, *command: str) -> list[str]:
    """A command under a host name, after munge's socket is there."""
    script = 'hostname "$0" && while [ ! -S "$1" ]; do sleep 0.05; done && shift && exec "$@"'
    return ["unshare", "--uts", "sh", "-c", script, host, f"{folder}/munge.socket", *command]


def _wait_for_nodes(started: Cluster, count: int) -> None:
    states = ""
    for _ in range(600):
        # sinfo waits long for a controller that is not there yet
        with suppress(subprocess.TimeoutExpired):
            states = subprocess.run(
                ["sinfo", "--noheader", "--Node", "--format=%t"],
                env=started.env,
                capture_output=True,
                text=True,
                timeout=20,
            ).stdout
            if states.split() == ["idle"] * count:
                return
        time.sleep(0.2)
    raise AssertionError(f"the nodes did not come up: {states}{started.logs()}")
