"""Node-local storage for a recorder while the command runs, never a network file system."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tracehint.collectors.base import RecordRequest
from tracehint.collectors.begin import new_manifest
from tracehint.collectors.hostinfo import host_name, mounts
from tracehint.collectors.run import report_failures
from tracehint.errors import BundleError, NotBegunError
from tracehint.schemas.manifest import MANIFEST_NAME
from tracehint.schemas.mounts import LOCAL, mount_of
from tracehint.schemas.plain import inside, replacing
from tracehint.schemas.writer import BundleWriter

_VARIABLES = ("SLURM_TMPDIR", "TMPDIR")
_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_FREE_DIVISOR = 4  # use at most one in so many parts of a disk's free space
_MIN_FREE = 64 << 20  # bytes that a disk must have free
_MEMORY_LIMIT = 256 << 20  # bytes, if no disk is suitable


def is_local(folder: Path) -> bool:
    """Whether a directory is on a local file system, disk or memory, of this node."""
    mount = mount_of(os.path.realpath(folder), mounts())
    return mount is not None and mount["fstype"] in LOCAL


def is_safe(folder: Path) -> bool:
    """Whether root's programs may trust files in a directory: only root can replace it or a parent.
    Always true for other users: the library checks the owner of their files."""
    path = Path(os.path.realpath(folder))
    return bool(os.geteuid()) or all(map(_is_protected, [path, *path.parents]))


def _is_protected(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    # in a sticky directory other users cannot rename root's files
    writable = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    return found.st_uid == 0 and not writable


def safe_folder() -> Path:
    """Return a directory for named temporary files. Raises NotBegunError."""
    for folder in (Path(tempfile.gettempdir()), *map(Path, _FOLDERS)):
        if is_safe(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise NotBegunError(
        "no directory for temporary files whose path only root can change",
        "Set TMPDIR to one: it and its parents must belong to root, and be sticky or not writable "
        "by others.",
    )


@contextmanager
def recorded_locally(request: RecordRequest, collector: str) -> Iterator[RecordRequest]:
    """Yield the request with a bundle directory on this node, unless its own is local.

    The bundle is copied to the requested directory at the end; until then that contains only a
    manifest, which names the local directory. Not used for the preload collector, which does this
    itself (preload/record.py), for `all`, which writes two bundles, and without space on this node.
    Raises BundleError; passes NotBegunError on.
    """
    elsewhere = collector not in ("preload", "all") and not is_local(request.output)
    place = _find_local_folder() if elsewhere else None
    if place is None:
        yield request
        return
    folder = Path(tempfile.mkdtemp(prefix="tracehint-", dir=place))
    local = folder / request.output.name
    note = (
        "The recorder did not reach its end, or is still at work. What it has recorded is in "
        f"{local} of {host_name(request.host)}: join that by `tracehint merge`."
    )
    manifest = new_manifest(request, collector, unfinished=note)
    BundleWriter(
        request.output, force=request.force, keep_args=request.keep_args, no_args=request.no_args
    ).write_manifest(manifest)
    try:
        yield replace(request, output=local, force=False)
    except BaseException:
        if not local.is_dir() or not any(local.iterdir()):  # nothing was run
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(request.output, ignore_errors=True)
        raise
    with report_failures(f"The bundle is in {local}."):
        _copy(local, inside(request.output))
        shutil.rmtree(folder, ignore_errors=True)


def _copy(bundle: Path, to: Path) -> None:
    """Copy the bundle, the manifest last: it marks the bundle as complete. Raises BundleError."""
    try:
        shutil.copytree(
            bundle, to, ignore=shutil.ignore_patterns(MANIFEST_NAME), dirs_exist_ok=True
        )
        with replacing(to / MANIFEST_NAME, 0o644) as fd, os.fdopen(os.dup(fd), "wb") as out:
            out.write((bundle / MANIFEST_NAME).read_bytes())
    except (OSError, shutil.Error) as error:
        raise BundleError(
            f"{to}: cannot be written: {error}", f"Free some space, then copy {bundle} there."
        ) from None


def _find_local_folder() -> Path | None:
    """Return a directory for temporary files on a local disk with enough free space, or None."""
    for folder in _list_folders():
        try:
            free = os.statvfs(folder)
            room = free.f_bavail * free.f_frsize
            writable = os.access(folder, os.W_OK | os.X_OK)
            if room >= _MIN_FREE and writable and is_local(folder) and is_safe(folder):
                return folder
        except OSError:
            continue
    return None


def open_node_local(most: int) -> tuple[int, int]:
    """Open a new unnamed file on this node; return it and its size limit: at most `most` bytes.

    It is deleted when the last process that has it open ends. Raises OSError.
    """
    for folder in _list_folders():
        try:
            free = os.statvfs(folder)
            room = free.f_bavail * free.f_frsize
            if room < _MIN_FREE or not is_local(folder):
                continue
            with tempfile.TemporaryFile(dir=folder) as file:
                return os.dup(file.fileno()), min(most, room // _FREE_DIVISOR)
        except OSError:
            continue
    fd = os.memfd_create("arena", os.MFD_CLOEXEC)
    os.fchmod(fd, 0o600)
    return fd, min(most, _MEMORY_LIMIT)


def _list_folders() -> Iterator[Path]:
    yield from (Path(text) for name in _VARIABLES if (text := os.environ.get(name)))
    yield from map(Path, _FOLDERS)
