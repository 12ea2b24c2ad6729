"""Add the locations of a run's files to its bundle, if the store reports them.

They are rows of the table `attributes`: name `location`, value `NODE=SHARE,...` (share of the
file's bytes on the node, 0 to 1; without `=` all of them). Nodes have the store's names; addresses
of this host become its name. Time and files are limited; the most read files are queried first.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.adapters.place.choose import share
from tracehint.adapters.stores.base import BatchLocator, Location, Locator, NameLocator
from tracehint.collectors.run import report_failures, working_directory
from tracehint.errors import TracehintError
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.adapters.place.hosts import Host
    from tracehint.adapters.stores.base import Locator
    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle


LOCATION = "location"
MOST_FILES = 20_000
SECONDS = 20.0
_BATCH = 128  # open descriptors at a time
_MAX_UNANSWERED = 256  # files without an answer after which the queries end
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
_LOCAL = re.compile(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL")


@dataclass
class Located:
    """Rows for `attributes`, and counts. `files`: read by the run; `asked`: queried; `gone`: no
    longer there; `elsewhere`: on other file systems, or not readable."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    asked: int = 0
    gone: int = 0
    elsewhere: int = 0


def locations(bundle: Bundle, store: Locator, roots: Sequence[bytes], host: str) -> Located:
    """Return the locations of files that the run read on the file systems of the roots."""
    if isinstance(store, NameLocator) and not store.mounted:
        return Located()
    devices = {os.stat(root).st_dev for root in roots if os.path.isdir(root)}  # noqa: PTH112, PTH116
    files, until = _list_read_files(bundle), time.monotonic() + SECONDS
    found, names = Located(files=len(files)), _addresses(bundle, host, until)
    for at in range(0, len(files), _BATCH):
        if time.monotonic() > until or (at >= _MAX_UNANSWERED and not found.rows):
            break
        _locate_batch(files[at : at + _BATCH], store, devices, found, names, until)
    for row in found.rows:
        row["host"] = host
    return found


def _list_read_files(bundle: Bundle) -> list[tuple[bytes, int]]:
    """Return (path, file) of the files that were read, most bytes first."""
    import pyarrow.compute as pc

    opens = bundle.tables["opens"].select(["path", "file", "read_bytes"])
    read = opens.filter(pc.greater(opens["read_bytes"], 0)).group_by("path")
    files = read.aggregate([("file", "min"), ("read_bytes", "sum")])
    most = [("read_bytes_sum", "descending"), ("path", "ascending")]
    files = files.sort_by(most).slice(0, MOST_FILES)
    return list(zip(files["path"].to_pylist(), files["file_min"].to_pylist(), strict=True))


def _locate_batch(
    files: Sequence[tuple[bytes, int]],
    store: Locator,
    devices: set[int],
    found: Located,
    names: dict[str, str],
    until: float,
) -> None:
    with ExitStack() as opened:
        fds, ids = [], []
        for path, file in files:
            fd = _open_file(path, devices, opened)
            if fd == _GONE:
                found.gone += 1
            elif fd is None:
                found.elsewhere += 1
            else:
                fds.append(fd)
                ids.append(file)
        for file, place in zip(ids, _ask_store(store, fds, until), strict=False):
            found.asked += 1
            if place is not None and place.nodes:
                row = {"file": file, "name": LOCATION, "value": _value(place, names)}
                found.rows.append(row)


def find_holders(bundle: Path, analysis: Analysis, hosts: Sequence[Host]) -> dict[int, int]:
    """Map each file of the analysis to the index of the host that holds all of it, as the store
    reported after the run."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.adapters.place.allocation import addresses_of
    from tracehint.adapters.place.hosts import by_name, find
    from tracehint.schemas.store import read_bundle
    from tracehint.schemas.tables import TABLES

    run = read_bundle(bundle, without=TABLES.keys() - {"attributes", "opens"})
    located = run.tables["attributes"]
    located = located.filter(pc.equal(located["name"], LOCATION))
    if not located.num_rows:
        return {}
    at = addresses_of([host.name for host in hosts])
    names = by_name(hosts) | {at[host.name]: host for host in hosts if host.name in at}
    opens = run.tables["opens"].select(["file", "path"])
    opens = opens.filter(pc.is_in(opens["file"], located["file"].combine_chunks()))
    paths = opens.group_by(["file", "path"]).aggregate([])
    nodes = dict(zip(located["file"].to_pylist(), located["value"].to_pylist(), strict=True))
    places: dict[bytes, int] = {}
    for file, path in zip(paths["file"].to_pylist(), paths["path"].to_pylist(), strict=True):
        host = find(names, nodes[file])
        if host is not None:
            places[path] = hosts.index(host)
    roots = [b"", *(os.fsencode(root) + b"/" for root in analysis.run["data_roots"])]
    below = {path[len(r) :]: n for path, n in places.items() for r in roots if path.startswith(r)}
    files = analysis.files.select(["file", "path"])
    files = files.filter(pc.is_in(files["path"], pa.array(below, pa.binary())))
    rows = zip(files["file"].to_pylist(), files["path"].to_pylist(), strict=True)
    return {file: below[path] for file, path in rows}


_GONE = -1


def _open_file(path: bytes, devices: set[int], opened: ExitStack) -> int | None:
    """Return a descriptor, _GONE, or None if the file is not on the store or not readable."""
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return _GONE
    except (OSError, ValueError):
        return None
    opened.callback(os.close, fd)
    return fd if os.fstat(fd).st_dev in devices else None


def _ask_store(store: Locator, fds: list[int], until: float) -> Iterator[Location | None]:
    """Yield the location for each descriptor until the time is up; None: not reported."""
    if isinstance(store, BatchLocator) and len(fds) > 1:
        try:
            yield from store.locate_all(fds)
            return
        except (OSError, TracehintError):
            pass  # one file caused the error: query each one separately
    for fd in fds:
        if time.monotonic() > until:
            return
        try:
            yield store.locate(fd)
        except (OSError, TracehintError):
            yield None


def _value(place: Location, names: dict[str, str]) -> str:
    parts: dict[str, float] = {}
    for node in place.nodes:
        name = names.get(node, node).replace(",", "_").replace("=", "_")
        parts[name] = max(parts.get(name, 0.0), share(place, node))
    return ",".join(n if part >= 1 else f"{n}={part:.4f}" for n, part in parts.items())


def _addresses(bundle: Bundle, host: str, until: float) -> dict[str, str]:
    """Map addresses and names to host names in the bundle: of this host, and, by the resolver, of
    other hosts that ran jobs."""
    names: dict[str, str] = {}
    for other in sorted({one.name for one in bundle.manifest.hosts} - {host}):
        if time.monotonic() > until:
            break
        with suppress(OSError, UnicodeError):
            found = socket.getaddrinfo(other, None, type=socket.SOCK_STREAM)
            names |= {str(address[0]): other for *_, address in found}
    return names | own_addresses(host)


def own_addresses(host: str) -> dict[str, str]:
    """Map each IPv4 address and the node name of this host to its host name in the bundle."""
    try:
        text = Path("/proc/net/fib_trie").read_text(encoding="ascii")
    except OSError:
        text = ""
    return dict.fromkeys([*_LOCAL.findall(text), os.uname().nodename], host)


def project_locator() -> Locator | None:
    """Return the store of tracehint.toml if it reports locations. Raises TracehintError."""
    from tracehint.adapters.project.config import find_config

    config = find_config(working_directory())
    if config is None or "store" not in config.values:
        return None
    places = config.values.get("map")
    return locator(config.values["store"], None, places)


def locator(store: str, prefix: str | None, places: Path | None) -> Locator | None:
    """Return the store of that name if it reports locations. Raises TracehintError."""
    from tracehint.adapters.stores.base import Locator
    from tracehint.adapters.stores.registry import open_store

    chosen = open_store(store, prefix=prefix, places=places)
    return chosen if isinstance(chosen, Locator) else None


def note_locations(
    bundle: Path, store: Locator | None, roots: tuple[str, ...], host_id: str, *, quiet: bool
) -> None:
    """Query the store and add the locations to the bundle; a failure never ends the command."""
    if store is None:
        return
    with report_failures("The recording itself is intact."):
        from tracehint.collectors.hostinfo import host_name
        from tracehint.schemas.store import read_bundle
        from tracehint.schemas.tables import TABLES

        run = read_bundle(bundle, without=TABLES.keys() - {"opens"})
        places = [os.fsencode(os.path.realpath(root)) for root in roots or (".",)]
        found = locations(run, store, places, host_name(host_id))
        if found.rows:
            _add(bundle, found.rows)
        left = found.files - found.gone - found.elsewhere - found.asked
        if found.rows and left and not quiet:
            reason = f"the store was not queried for the location of {plural(left, 'file')}"
            click.echo(f"tracehint: {reason} (too many, or too slow)", err=True)


def _add(bundle: Path, rows: list[dict[str, Any]]) -> None:
    """Append the rows to the table `attributes`."""
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.store import table_from_rows
    from tracehint.schemas.writer import BundleWriter

    writer = BundleWriter.append_to(bundle)
    manifest = read_manifest(writer.path.inside)
    there = manifest.rows.get("attributes", 0)
    writer.write_table("attributes", table_from_rows("attributes", rows), segment=1 if there else 0)
    manifest.rows = {**manifest.rows, "attributes": there + len(rows)}
    writer.write_manifest(manifest)
