"""Tables and manifests of several recordings as one: identifiers renumbered, hosts kept."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tracehint.collectors.clocks import apart
from tracehint.collectors.parts import IDENTIFIERS, highest, moved, offsets_of
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.tables import TABLES


def join_tables(parts: Sequence[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """One set of tables; identifiers of the second and later parts are moved up."""
    if len(parts) == 1:
        return parts[0]
    offsets = offsets_of([{key: highest(part, key) for key in IDENTIFIERS} for part in parts])
    pairs = list(zip(parts, offsets, strict=True))
    return {name: pa.concat_tables([moved(p[name], by) for p, by in pairs]) for name in TABLES}


def join_manifests(manifests: Sequence[Manifest]) -> Manifest:
    """The joined run: earliest start, latest end, first failure, all blind spots and notes."""
    ordered = sorted(manifests, key=lambda m: m.started_ns or 1 << 62)
    first = ordered[0]
    ends = [m.ended_ns for m in ordered]
    statuses = [m.exit_status for m in ordered]
    collectors = list(dict.fromkeys(m.collector for m in ordered))
    notes = [n for m in ordered for n in m.notes]
    notes += filter(None, [apart([(m.started_ns, m.ended_ns) for m in ordered])])
    return Manifest(
        format=first.format,
        program=first.program,
        collector=",".join(collectors),
        command=first.command,
        cwd=first.cwd,
        started_ns=first.started_ns,
        ended_ns=None if None in ends else max(e for e in ends if e is not None),
        exit_status=None if None in statuses else next((s for s in statuses if s), 0),
        complete=all(m.complete for m in ordered),
        hosts=_hosts(ordered),
        data_roots=list(dict.fromkeys(r for m in ordered for r in m.data_roots)),
        blind_to=list(dict.fromkeys(b for m in ordered for b in m.blind_to)),
        notes=list(dict.fromkeys(notes)),
        redacted_args=sum(m.redacted_args for m in ordered),
        parts=list(dict.fromkeys(i for m in ordered for i in m.parts or [m.recording] if i)),
        kept_args=any(m.kept_args for m in ordered),
    )


def _hosts(manifests: Sequence[Manifest]) -> list[RecordingHost]:
    """Each host once; the mounts of a host that appears several times are united."""
    found: dict[str, RecordingHost] = {}
    for host in (h for m in manifests for h in m.hosts):
        known = found.setdefault(host.name, host)
        if known is not host:
            known.mounts = known.mounts + [m for m in host.mounts if m not in known.mounts]
    return list(found.values())
