"""`manifest.json` of a trace bundle: what was run, where, by which collector, what was lost."""

from __future__ import annotations

import dataclasses
import json
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.errors import BundleError
from tracehint.limits import exceeded, limit, values_of
from tracehint.schemas.kinds import instead
from tracehint.schemas.manifest_check import HOST, MANIFEST, fields_of
from tracehint.schemas.version import FORMAT

MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 64 << 20
_MAX_NOTES = 5000


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
    """The facts of a run that are not rows. All lists may be empty, none is null."""

    format: str = FORMAT
    program: str = ""  # "tracehint 0.1.0"
    collector: str = ""  # ebpf, strace, strace-light, bpftrace, darshan, import:wfformat ...
    command: list[str] = field(default_factory=list)  # surrogate-escaped
    cwd: str = ""
    started_ns: int = 0
    ended_ns: int | None = None
    exit_status: int | None = None
    complete: bool = False  # false: the recorder did not reach its end
    hosts: list[RecordingHost] = field(default_factory=list)
    data_roots: list[str] = field(default_factory=list)  # given by the user; empty: derive
    # codes of what this collector cannot see: "mmap", "io_uring", "bytes", "static_binaries" ...
    blind_to: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    redacted_args: int = 0
    recording: str = ""  # identity, random; empty in older bundles and in imported ones
    parts: list[str] = field(default_factory=list)  # of a merged run: identities of its recordings
    rows: dict[str, int] = field(default_factory=dict)  # written per table; none: not stated
    kept_args: bool = False  # --keep-args: nothing was or is to be taken out


def hide_command(manifest: Manifest) -> None:
    """Take the secrets out of the command line, and count them."""
    from tracehint.schemas.redact.commands import redact_words_of

    manifest.command, hits = redact_words_of(manifest.command)
    manifest.redacted_args += hits


def manifest_to_json(manifest: Manifest) -> str:
    """Text of `manifest.json`; names that are not UTF-8 survive as surrogate escapes.

    A note for each of a million logs would be a manifest that nobody reads: of more than 5,000
    the last one says how many there were.
    """
    data = dataclasses.asdict(manifest)
    more = len(manifest.notes) - _MAX_NOTES
    if more > 0:
        data["notes"][_MAX_NOTES:] = [f"and {more:,} notes more"]
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def read_manifest(bundle: Path) -> Manifest:
    """The manifest of the bundle directory.

    Raises BundleError if it is missing, damaged, or of a newer format.
    """
    path = bundle / MANIFEST_NAME
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BundleError(f"{path}: is no regular file", "Give a trace bundle.")
        if found.st_size > MAX_MANIFEST_BYTES:
            raise BundleError(f"{path}: manifest is larger than 64 MiB", "It is damaged.")
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise BundleError(*instead("bundle", bundle)) from None
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the run again.") from None
    return parse_manifest(data, path)


def parse_manifest(text: bytes, path: Path | str) -> Manifest:
    """The manifest in `text`; `path` is named in errors (BundleError)."""
    if values_of(text) > limit("json-values"):
        told = exceeded("json-values", str(path))
        raise BundleError(told.what, told.remedy)
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
    try:
        manifest = Manifest(**fields_of(data, MANIFEST))
        manifest.hosts = [RecordingHost(**fields_of(host, HOST)) for host in data.get("hosts", [])]
    except TypeError as error:
        raise BundleError(f"{path}: damaged manifest: {error}", "Record the run again.") from None
    return manifest
