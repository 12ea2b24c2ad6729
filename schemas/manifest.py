"""`manifest.json` of a trace bundle: command, hosts, collector, completeness and notes."""

from __future__ import annotations

import dataclasses
import json
import re
import stat
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.errors import BundleError
from tracehint.limits import limit, limit_error, values_of
from tracehint.schemas.kinds import instead
from tracehint.schemas.wording import plural

HINTS_NAME = "hints.json"  # in a bundle: the hint file that `tracehint run` used
FORMAT = "tracehint.bundle/1"  # incremented when the meaning of stored data changes
# columns: schemas/tables.py
TABLE_NAMES = (
    "processes",
    "files",
    "names",
    "opens",
    "extents",
    "metadata_ops",
    "marks",
    "losses",
    "attributes",
    "declared_tasks",
    "declared_io",
    "settings",
)


MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 64 << 20
_MAX_NOTES = 5000
# msgspec inspects a class at its first use, and crashes if two threads do so at once
_CONVERTING = threading.Lock()


@dataclass
class RecordingHost:
    """One recording host."""

    name: str
    kernel: str = ""
    site: str = ""
    boot_id: str = ""
    cpus: int = 0
    # mount points: {"path", "fstype", "source", "dev"}; source and fstype decide what is shared
    mounts: list[dict[str, Any]] = field(default_factory=list)
    # BOOTTIME -> REALTIME, in nanoseconds: {"boot_ns", "real_ns", "error_ns"}
    clock: dict[str, int] = field(default_factory=dict)


@dataclass
class Manifest:
    """Facts of a run that are not rows of tables. Lists may be empty but not null."""

    format: str = FORMAT
    program: str = ""  # "tracehint 0.1.0"
    collector: str = ""  # ebpf, strace, strace-light, bpftrace, darshan, import:wfformat ...
    command: list[str] = field(default_factory=list)  # surrogate-escaped
    cwd: str = ""
    started_ns: int = 0
    ended_ns: int | None = None
    exit_status: int | None = None
    complete: bool = False  # false: the recorder did not finish
    hosts: list[RecordingHost] = field(default_factory=list)
    data_roots: list[str] = field(default_factory=list)  # given by the user; empty: derive
    # codes of data that this collector cannot observe: "mmap", "bytes", "static_binaries" ...
    blind_to: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    redacted_args: int = 0
    recording: str = ""  # random identifier; empty in older and in imported bundles
    parts: list[str] = field(default_factory=list)  # of a merged run: identifiers of its recordings
    rows: dict[str, int] = field(default_factory=dict)  # written per table; empty: not stated
    kept_args: bool = False  # --keep-args: nothing is redacted
    no_args: bool = False  # --args none: only the program of a command is stored


def hide_command(manifest: Manifest) -> None:
    """Redact secrets in the command line and count them; with no_args, remove all arguments."""
    from tracehint.schemas.redact.commands import redact_words_of

    if manifest.no_args:
        del manifest.command[1:]
    manifest.command, hits = redact_words_of(manifest.command)
    manifest.redacted_args += hits


def manifest_to_json(manifest: Manifest) -> str:
    """Return the text of `manifest.json`; names that are not UTF-8 become surrogate escapes.

    Each of a million logs may add a note: of more than 5,000 notes the first 5,000 are
    written, and a last one with the number of further notes.
    """
    data = dataclasses.asdict(manifest)
    more = len(manifest.notes) - _MAX_NOTES
    if more > 0:
        data["notes"][_MAX_NOTES:] = [f"and {plural(more, 'more note')}"]
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def read_manifest(bundle: Path) -> Manifest:
    """Read the manifest of the bundle directory.

    Raises BundleError if it is missing, damaged, or of a newer format.
    """
    path = bundle / MANIFEST_NAME
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BundleError(f"{path}: is not a regular file", "Give a trace bundle.")
        if found.st_size > MAX_MANIFEST_BYTES:
            raise BundleError(f"{path}: manifest is larger than 64 MiB", "It is damaged.")
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise BundleError(*instead("bundle", bundle)) from None
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the run again.") from None
    return parse_manifest(data, path)


def parse_manifest(text: bytes, path: Path | str) -> Manifest:
    """Parse the manifest in `text`; `path` is named in errors (BundleError)."""
    if values_of(text) > limit("json-values"):
        refusal = limit_error("json-values", str(path))
        raise BundleError(refusal.what, refusal.remedy)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the run again.") from None
    if not isinstance(data, dict) or not isinstance(data.get("format"), str):
        raise BundleError(f"{path}: not a tracehint manifest", "Record the run again.")
    name, _, version = data["format"].partition("/")
    ours = FORMAT.partition("/")[2]
    if name != FORMAT.partition("/")[0] or not re.fullmatch("[0-9]{1,9}", version):
        raise BundleError(f"{path}: unknown format {data['format']!r}", "Record the run again.")
    if int(version) > int(ours):
        raise BundleError(
            f"{path}: written by a newer tracehint (format {version}, this one reads {ours})",
            "Upgrade tracehint: pip install -U tracehint",
        )
    from msgspec import convert

    try:
        _check_plain(data)
        with _CONVERTING:
            manifest = convert(data, Manifest)
        mounts = [mount for host in manifest.hosts for mount in host.mounts]
        if any(
            isinstance(value, list | dict | float) for mount in mounts for value in mount.values()
        ):
            raise ValueError("mount values must be strings, numbers or booleans")
        if not all(mount.keys() >= {"path", "fstype", "source"} for mount in mounts):
            raise ValueError("a mount needs path, fstype and source")
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged manifest: {error}", "Record the run again.") from None
    return manifest


def _check_plain(value: Any) -> None:
    """Raise ValueError for a text with NUL (in no path or argument), or a number over 63 bits."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError(f"a NUL in {value[:80]!r}")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise ValueError(f"the number {value} is too large")
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        _check_plain(part)
