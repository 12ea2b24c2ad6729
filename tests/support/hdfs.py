"""A real HDFS on the bed of shaped links: a namenode on the head, a datanode on each node."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import webhdfs
from tests.support.bed import HEAD, Bed, Node, network
from tests.support.engines import engine
from tests.support.patience import PATIENCE_S

LOG = """\
log4j.rootLogger=WARN,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.target=System.err
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%p %c: %m%n
"""


@dataclass
class Hdfs:
    """The running store; `tool` is the program hdfs."""

    bed: Bed
    folder: Path
    tool: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What its tools need: their directory on the PATH, and the configuration."""
        return {
            **os.environ,
            "PATH": f"{self.tool.parent}:{os.environ['PATH']}",
            "HADOOP_CONF_DIR": str(self.folder / "conf"),
        }

    @property
    def nodes(self) -> list[Node]:
        """Nodes with a datanode."""
        return self.bed.nodes

    def start(self, name: str, *words: str, node: Node | None = None) -> None:
        """Start a server on the head or on a node."""
        with (self.folder / f"{name}.log").open("wb") as log:
            # without the node's own host name, which Java could not resolve
            space = node.space if node else self.bed.space
            command = ["nsenter", f"--net=/run/netns/{space}", self.tool, *words]
            self.running.append(
                subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
            )

    def call(self, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program on the head and wait."""
        return subprocess.run(
            self.bed.command(*words),
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the tool on the head and wait."""
        return self.call(self.tool, *words, cwd=self.folder)


def _configure(folder: Path) -> None:
    values = {
        "fs.defaultFS": f"hdfs://{HEAD}:9820",
        "dfs.namenode.name.dir": f"{folder}/name",
        "dfs.namenode.http-address": f"{HEAD}:9870",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
    }
    rows = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    (folder / "conf").mkdir()
    (folder / "conf" / "log4j.properties").write_text(LOG)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / "conf" / name).write_text(f"<configuration>{rows}</configuration>")


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """Start everything, wait until all datanodes accept data, and stop it at the end. May skip."""
    tool = engine("bin/hdfs")
    with network(folder) as bed:
        store = Hdfs(bed, folder, tool)
        _configure(folder)
        done = store.run("namenode", "-format", "-nonInteractive")
        assert done.returncode == 0, done.stderr[-2000:]
        try:
            store.start("namenode", "namenode")
            for node in store.nodes:
                _datanode(store, node)
            _wait(store)
            yield store
        finally:
            for process in reversed(store.running):
                process.kill()
                process.wait()


def _datanode(store: Hdfs, node: Node) -> None:
    own = store.folder / f"d{node.label}"
    disks = f"[SSD]file://{own}/ssd,[DISK]file://{own}/disk"
    store.start(
        own.name,
        "datanode",
        "-D",
        f"dfs.datanode.data.dir={disks}",
        "-D",
        f"dfs.datanode.hostname={node.address}",
        node=node,
    )


def _wait(store: Hdfs) -> None:
    """Wait until a file with a copy on every datanode can be written."""
    end, said = time.monotonic() + PATIENCE_S, "no answer"
    while time.monotonic() < end:
        try:
            if webhdfs.within(store.bed.space, _probe, len(store.nodes)):
                return
        except OSError as error:
            said = str(error)
        time.sleep(1)
    log = (store.folder / "namenode.log").read_text()[-2000:]
    raise AssertionError(f"HDFS did not come up: {said}\n{log}")


def _probe(copies: int) -> bool:
    webhdfs.create("/probe", 1, [b"x"], replication=copies)
    return all(len(nodes) == copies for nodes in webhdfs.hosts("/probe"))
