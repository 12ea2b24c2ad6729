"""Start of a recording, common to all collectors: bundle, manifest and environment."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracehint.collectors import hostinfo
from tracehint.collectors.base import RecordRequest
from tracehint.collectors.hostinfo import boot_id, process_status
from tracehint.collectors.run import working_directory
from tracehint.errors import BundleError, UsageError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.writer import BundleWriter
from tracehint.version import __version__


def new_manifest(
    request: RecordRequest,
    collector: str,
    *,
    blind_to: Sequence[str] = (),
    command: Sequence[bytes] | None = None,
    unfinished: str = "",
) -> Manifest:
    """Return the manifest of a recording that starts now.

    command: replaces the request's command. unfinished: note for readers of a bundle whose recorder
    did not finish.
    """
    raw = [os.fsencode(a) for a in request.command] if command is None else list(command)
    return Manifest(
        program=f"tracehint {__version__}",
        collector=collector,
        command=[os.fsdecode(a) for a in raw],
        started_ns=time.time_ns(),
        cwd=str(working_directory()),
        hosts=[hostinfo.this_host(request.host)],
        data_roots=list(request.data_roots),
        blind_to=list(blind_to),
        recording=os.urandom(16).hex(),
        notes=[unfinished] if unfinished else [],
    )


def begin(
    request: RecordRequest, manifest: Manifest, folder: str, log: str = ""
) -> tuple[BundleWriter, Path]:
    """Create the bundle and in it the directory `folder`, with an empty file `log` if one is named.

    Return the bundle's writer and the path of the directory or file, through the descriptor that
    the writer holds. Raises BundleError.
    """
    writer = BundleWriter(
        request.output, force=request.force, keep_args=request.keep_args, no_args=request.no_args
    )
    place = writer.path.inside / folder
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if log:
            place /= log
            place.touch(mode=0o600)
    except OSError as error:
        raise BundleError(
            f"{request.output / folder}: cannot be written: {error.strerror}",
            "Choose another place with -o.",
        ) from None
    writer.write_manifest(manifest)
    return writer, place


def linger_seconds(request: RecordRequest, default: float) -> float:
    """Return option `linger` in seconds: how long to wait for processes that outlive the command.

    The option is in milliseconds. Raises UsageError.
    """
    text = request.options.get("linger", "")
    if text and not text.isdigit():
        raise UsageError(
            f"linger={text}: not a number of milliseconds", "Give --option linger=5000"
        )
    return int(text) / 1000 if text else default


# Marks the environment so that a nested `tracehint record` detects the recording: boot id, inode of
# the pid namespace, pid of the recorder.
RECORDING = "TRACEHINT_RECORDING"
ARENA = "TRACEHINT_RECORD"  # where the preload library records (collectors/preload/hook)
BUNDLE_DIR = "TRACEHINT_BUNDLE_DIR"
_MAX_NUMBER = 100_000
_MAX_ENVIRONMENT = 1 << 20  # bytes


def child_environment(request: RecordRequest) -> dict[str, str]:
    """Return the command's environment: inherited, request's additions, mark of this recording."""
    env = {**request.inherited, **request.environment}
    env[RECORDING] = f"{boot_id()}:{_pid_namespace()}:{os.getpid()}"
    return env


def _pid_namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def recorded_already() -> bool:
    """Whether this process runs inside a recording on this machine.

    Checks its own environment and the initial ones of its ancestors (`env -i` removes the mark).
    The mark alone is not enough: batch systems copy the environment to other nodes and to processes
    that are not descendants of the recorder.
    """
    if os.environ.get(ARENA) and _is_mapped("libtracehint.so"):
        return True  # the library is loaded, whatever the environment
    return any(map(_is_valid_mark, (os.environ.get(RECORDING, ""), *_read_marks())))


def _is_mapped(name: str) -> bool:
    try:
        return name in Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return False


def _is_valid_mark(text: str) -> bool:
    mark = text.split(":")
    if len(mark) != 3 or mark[0] != boot_id() or not mark[2].isdigit():
        return False
    if mark[1] != str(_pid_namespace()):
        return True  # nested pid namespace: pids cannot be compared, the tree is followed
    return int(mark[2]) in _list_ancestors() or _is_traced()


def _read_marks() -> Iterator[str]:
    """Yield the readable marks in the initial environments of this process and its ancestors."""
    name = f"{RECORDING}=".encode()
    for pid in _list_ancestors():
        try:
            with Path(f"/proc/{pid}/environ").open("rb") as stream:
                entries = stream.read(_MAX_ENVIRONMENT).split(b"\0")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(name):
                yield entry.removeprefix(name).decode(errors="replace")


def _list_ancestors() -> Iterator[int]:
    """Yield the pids of this process and its ancestors, without pid 1."""
    current, seen = os.getpid(), 0
    while current > 1 and seen < 10_000:
        yield current
        current = _read_status_number(current, "PPid")
        seen += 1


def _is_traced() -> bool:
    return _read_status_number(os.getpid(), "TracerPid") > 0


def _read_status_number(pid: int, field: str) -> int:
    return int(process_status(pid).get(field, ["0"])[0])


def default_bundle(command: tuple[str, ...], host: str = "") -> Path:
    """Create a new directory named after the command (mode 0700) and return its path.

    If TRACEHINT_BUNDLE_DIR is set, it is created there, with the host in its name. Raises
    BundleError if it cannot be created.
    """
    stem = re.sub(r"[^A-Za-z0-9._+-]", "_", Path(command[0]).name)[:100].lstrip(".-") or "run"
    folder = os.environ.get(BUNDLE_DIR)
    base = Path(folder) if folder else working_directory()
    if folder:
        from tracehint.collectors.hostinfo import host_name
        from tracehint.schemas.writer import safe_host

        stem = f"{stem}.{safe_host(host_name(host))}"
    for number in range(1, _MAX_NUMBER):
        path = base / (f"{stem}.trace" if number == 1 else f"{stem}-{number}.trace")
        try:
            base.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise BundleError(
                f"{path}: cannot be created: {error.strerror}", "Choose another place with -o."
            ) from None
        return path
    raise BundleError(f"{base}: too many bundles with this name", "Choose a name with -o.")
