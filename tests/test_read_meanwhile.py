"""A bundle that is read while its recorder ends equals the recorder's final bundle."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tracehint.errors import BundleError
from tracehint.schemas import store
from tracehint.schemas.manifest import MANIFEST_NAME, manifest_to_json, read_manifest
from tracehint.schemas.store import read_bundle


def at_work(path: Path) -> Path:
    """Save a bundle whose recorder has written the tables but not the end of its manifest."""
    run = RunBuilder(ended_ns=None, complete=False)
    run.write(run.process(["make", "it"]), run.file("/data/x", existed=False), 0, 100, at=1.0)
    run.save(path)
    (path / "spool").mkdir()
    return path


def ends(path: Path) -> None:
    """Perform a recorder's final steps."""
    manifest = read_manifest(path)
    manifest.ended_ns, manifest.complete = manifest.started_ns + 10**9, True
    (path / MANIFEST_NAME).write_text(manifest_to_json(manifest))
    shutil.rmtree(path / "spool")


def fails(*_: object) -> Any:
    raise BundleError("spool: damaged", "Record it again.")


@pytest.mark.parametrize("recovered", [store.recover_tables, fails], ids=["gone", "half gone"])
def test_a_recorder_that_ends_meanwhile_leaves_a_whole_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovered: Callable[..., Any]
) -> None:
    path = at_work(tmp_path / "b.trace")

    def too_late(*given: Any) -> Any:
        ends(path)
        return recovered(*given)

    monkeypatch.setattr(store, "recover_tables", too_late)
    bundle = read_bundle(path)
    assert bundle.manifest.complete and bundle.manifest.ended_ns
    assert not bundle.problems and not len(bundle.tables["losses"])
    assert len(bundle.tables["extents"]) == 1


def test_what_a_killed_recorder_left_is_still_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at_work(tmp_path / "b.trace")
    monkeypatch.setattr(store, "recover_tables", fails)
    with pytest.raises(BundleError, match="spool: damaged"):
        read_bundle(path)
