"""The beginning of a recording, the same for every collector: the bundle, and what it is of."""

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
    """The manifest of a recording that begins.

    command: where it is not the request's. unfinished: the note for who finds the bundle as it is
    now, because the recorder did not reach its end.
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
    """Make the bundle, in it the folder for what is recorded, in that an empty file `log`.

    Returns the bundle's writer, and the folder or file, by the descriptor that the writer holds.
    Raises BundleError.
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
    """Option `linger`: milliseconds to wait for processes that outlive the command.

    Raises UsageError.
    """
    text = request.options.get("linger", "")
    if text and not text.isdigit():
        raise UsageError(
            f"linger={text}: not a number of milliseconds", "Give --option linger=5000"
        )
    return int(text) / 1000 if text else default


# Tells a nested `tracehint record` that its processes are followed already:
# boot id, inode of the pid namespace, pid of the recorder.
RECORDING = "TRACEHINT_RECORDING"
ARENA = "TRACEHINT_RECORD"  # where the preload library records to (collectors/preload/hook)
BUNDLE_DIR = "TRACEHINT_BUNDLE_DIR"
_MAX_NUMBER = 100_000
_MAX_ENVIRONMENT = 1 << 20  # bytes


def child_environment(request: RecordRequest) -> dict[str, str]:
    """The command's environment: ours, what the request adds, and the mark of this recording."""
    env = {**request.inherited, **request.environment}
    env[RECORDING] = f"{boot_id()}:{_pid_namespace()}:{os.getpid()}"
    return env


def _pid_namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def recorded_already() -> bool:
    """Whether this process runs inside a recording on this machine, by its own environment and
    those that its ancestors began with (`env -i` takes the mark away).

    The mark alone does not tell: batch systems carry the environment to other
    nodes and to processes that are not descendants of the recorder.
    """
    if os.environ.get(ARENA) and _is_mapped("libtracehint.so"):
        return True  # the library came in with the program, whatever its environment
    return any(map(_holds, (os.environ.get(RECORDING, ""), *_marks_above())))


def _is_mapped(name: str) -> bool:
    try:
        return name in Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return False


def _holds(text: str) -> bool:
    mark = text.split(":")
    if len(mark) != 3 or mark[0] != boot_id() or not mark[2].isdigit():
        return False
    if mark[1] != str(_pid_namespace()):
        return True  # in a namespace of its own: pids cannot be compared, the tree is followed
    return int(mark[2]) in _ancestors() or _is_traced()


def _marks_above() -> Iterator[str]:
    """The marks in the environments that the ancestors began with, as far as they can be read."""
    name = f"{RECORDING}=".encode()
    for pid in _ancestors():
        try:
            with Path(f"/proc/{pid}/environ").open("rb") as stream:
                entries = stream.read(_MAX_ENVIRONMENT).split(b"\0")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(name):
                yield entry.removeprefix(name).decode(errors="replace")


def _ancestors() -> Iterator[int]:
    """This process and those above it, to the first."""
    current, seen = os.getpid(), 0
    while current > 1 and seen < 10_000:
        yield current
        current = _status(current, "PPid")
        seen += 1


def _is_traced() -> bool:
    return _status(os.getpid(), "TracerPid") > 0


def _status(pid: int, field: str) -> int:
    return int(process_status(pid).get(field, ["0"])[0])


def default_bundle(command: tuple[str, ...], host: str = "") -> Path:
    """A directory named after the command that does not exist yet; it is made (mode 0700).

    In TRACEHINT_BUNDLE_DIR, where that is set, with the host in its name. Raises
    BundleError where the place cannot be written.
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
                f"{path}: cannot be made: {error.strerror}", "Choose another place with -o."
            ) from None
        return path
    raise BundleError(f"{base}: too many bundles of this name", "Choose a name with -o.")
