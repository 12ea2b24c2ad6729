"""Where files lie that only jobs on other nodes read: asked when their recordings are joined."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tracehint.adapters import located
from tracehint.adapters.stores.base import Location
from tracehint.cli import main
from tracehint.collectors.preload import PreloadCollector
from tracehint.commands import run as run_command
from tracehint.commands._jobs import Jobs
from tracehint.commands._jobs import _merged as joined
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.store import read_bundle

_CHECK = PreloadCollector().check()


class Store:
    """All of it lies on one node."""

    def __init__(self, node: str) -> None:
        self.node = node

    def locate(self, fd: int) -> Location | None:
        """That node."""
        return Location(nodes=(self.node,), detail={})


def test_the_address_of_another_node_becomes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("1" * 100)
    run = RunBuilder(host="node1", cwd=str(tmp_path))
    run.manifest.hosts.append(RecordingHost(name="node7", mounts=[]))
    file = run.file(str(tmp_path / "x"), existed=True)
    run.read(run.process(["cat"]), file, 0, 100, at=1.0)

    def resolved(name: str, *_: Any, **__: Any) -> list[Any]:
        if name != "node7":
            raise socket.gaierror
        return [(2, 1, 6, "", ("10.9.8.7", 0)), (10, 1, 6, "", ("fe80::7", 0, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    for node, name in (("10.9.8.7", "node7"), ("10.9.8.6", "10.9.8.6")):
        bundle = run.bundle(tmp_path / name)
        found = located.locations(bundle, Store(node), [os.fsencode(tmp_path)], "node1")
        assert [row["value"] for row in found.rows] == [name]


@pytest.mark.slow
@pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)
def test_files_that_only_a_job_read_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's recording comes when the command has ended, as of a node that is far away."""
    (tmp_path / "in").write_text("1" * 1000)
    job = RunBuilder(host="node7", cwd=str(tmp_path))
    file = job.file(str(tmp_path / "in"), existed=True)
    job.read(job.process(["sort", "in"]), file, 0, 1000, at=1.0)

    def join(self: Jobs, bundle: Path, *, quiet: bool) -> None:  # noqa: ARG001
        assert joined(bundle, [job.save(tmp_path / "job.trace")])

    monkeypatch.setattr(Jobs, "join", join)
    monkeypatch.setattr(run_command, "locator", lambda *_: Store("node7"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--collector", "preload", "--", "true"]) == 0
    bundle = read_bundle(tmp_path / ".tracehint/runs/0001.trace")
    paths = {row["file"]: row["path"] for row in bundle.tables["opens"].to_pylist()}
    said = {paths[row["file"]]: row["value"] for row in bundle.tables["attributes"].to_pylist()}
    assert said[os.fsencode(tmp_path / "in")] == "node7"
