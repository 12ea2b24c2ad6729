"""What changed between two runs of one workflow, as findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query
from tracehint.hintgen.lint.finding import Finding, Savings, rank
from tracehint.hintgen.text.masks import masks_of
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


# code -> (name, severity)
CHANGES: dict[str, tuple[str, str]] = {
    "DF001": ("changed-task-count", "warning"),
    "DF002": ("more-failed-tasks", "error"),
    "DF003": ("new-files", "warning"),
    "DF004": ("gone-files", "warning"),
    "DF005": ("changed-flow", "warning"),
    "DF006": ("changed-pattern", "warning"),
    "DF007": ("changed-file-count", "warning"),
    "DF008": ("changed-volume", "warning"),
}
_FIX = "if the change is meant, keep the new run as the reference"


@dataclass(frozen=True)
class Tolerances:
    """Changes up to these are not reported. Shares are of the larger of the two values."""

    volume_share: float = 0.10
    volume_bytes: int = 64 << 10  # smaller changes are not reported either
    count_share: float = 0.0


def compare(before: Profile, after: Profile, limits: Tolerances) -> list[Finding]:
    """Return the changes as findings, errors first, then by bytes."""
    found = [*_compare_stages(before, after, limits), *_compare_groups(before, after, limits)]
    return sorted(found, key=rank)


def _finding(
    code: str,
    message: str,
    group: FileProfile | None = None,
    *,
    bytes_: int = 0,
    made: str = "",
    evidence: dict[str, object] | None = None,
) -> Finding:
    name, severity = CHANGES[code]
    return Finding(
        code=code,
        name=name,
        severity=severity,
        message=message,
        template=(group.template if group.files == 1 else group.mask) if group else "",
        files=group.files if group else 0,
        bytes=bytes_,
        saves=Savings(),
        confidence=1.0,
        fix=_FIX,
        examples=group.examples if group else (),
        producers=", ".join(group.made) if group else made,
        consumers=", ".join(group.used) if group else "",
        evidence=evidence or {},
    )


def _compare_stages(before: Profile, after: Profile, limits: Tolerances) -> Iterator[Finding]:
    for name in sorted({*before.stages, *after.stages}):
        a, b = _tasks(before.stages.get(name)), _tasks(after.stages.get(name))
        facts: dict[str, object] = {"before": a[0], "after": b[0]}
        if _differ(a[0], b[0], limits.count_share):
            what = "new" if not a[0] else "gone" if not b[0] else f"{a[0]:,} -> {b[0]:,}"
            message = f"tasks of type {name}: {what}"
            if not a[0] or not b[0]:
                message += f" ({plural(a[0] or b[0], 'task')})"
            yield _finding("DF001", message, made=name, evidence=facts)
        if b[1] > a[1]:
            facts = {"before": a[1], "after": b[1]}
            message = f"failed tasks of type {name}: {a[1]:,} -> {b[1]:,}"
            yield _finding("DF002", message, made=name, evidence=facts)


def _tasks(stage: StageProfile | None) -> tuple[int, int]:
    return (stage.tasks, stage.failed) if stage else (0, 0)


def _differ(a: int, b: int, share: float) -> bool:
    return abs(a - b) > share * max(a, b)


def _compare_groups(before: Profile, after: Profile, limits: Tolerances) -> Iterator[Finding]:
    left, right = list(before.groups), list(after.groups)
    # From the strictest match to the weakest; matched groups are removed.
    for key in (_exact, _same_name):
        pairs, left, right = _pair(left, right, key)
        for a, b in pairs:
            yield from _compare_pair(a, b, limits)
    # Random names that no mask recognises are matched by tasks, extension and number of files.
    pools = _pair_pools(left, right)
    for old, new in pools:
        if sum(g.files for g in old) == sum(g.files for g in new):
            yield from _compare_volumes(old, new, limits)
            left = [g for g in left if g not in old]
            right = [g for g in right if g not in new]
    for group in right:
        yield _finding("DF003", f"{_describe_group(group)}: new", group, bytes_=group.size_bytes)
    for group in left:
        yield _finding("DF004", f"{_describe_group(group)}: gone", group, bytes_=group.size_bytes)


def _describe_group(group: FileProfile) -> str:
    made, used = ", ".join(group.made), ", ".join(group.used)
    flow = " ".join(x for x in (made and f"from {made}", used and f"to {used}") if x)
    return f"{plural(group.files, 'file')} ({size(group.size_bytes)}) {flow}"


def _exact(group: FileProfile) -> Hashable:
    return (group.mask, group.role, group.made, group.used)


def _same_name(group: FileProfile) -> Hashable:
    return group.mask


def _pair(
    left: list[FileProfile], right: list[FileProfile], key: Callable[[FileProfile], Hashable]
) -> tuple[list[tuple[FileProfile, FileProfile]], list[FileProfile], list[FileProfile]]:
    """Return the pairs whose key occurs once on each side, and the remaining groups of both."""
    ours, theirs = _index_by(left, key), _index_by(right, key)
    sure = {k for k in ours if len(ours[k]) == 1 and len(theirs.get(k, ())) == 1}
    pairs = [(ours[k][0], theirs[k][0]) for k in ours if k in sure]
    return (
        pairs,
        [g for g in left if key(g) not in sure],
        [g for g in right if key(g) not in sure],
    )


def _index_by(
    groups: Iterable[FileProfile], key: Callable[[FileProfile], Hashable]
) -> dict[Hashable, list[FileProfile]]:
    found: dict[Hashable, list[FileProfile]] = defaultdict(list)
    for group in groups:
        found[key(group)].append(group)
    return found


def _pair_pools(
    left: list[FileProfile], right: list[FileProfile]
) -> list[tuple[list[FileProfile], list[FileProfile]]]:
    def key(group: FileProfile) -> Hashable:
        return (group.role, group.made, group.used, group.ending, group.pattern)

    ours, theirs = _index_by(left, key), _index_by(right, key)
    return [(ours[k], theirs[k]) for k in ours if k in theirs]


def _compare_pair(a: FileProfile, b: FileProfile, limits: Tolerances) -> Iterator[Finding]:
    if (a.made, a.used) != (b.made, b.used):
        parts = [*_names("written by", a.made, b.made), *_names("read by", a.used, b.used)]
        facts: dict[str, object] = {
            "made_before": a.made,
            "made_after": b.made,
            "used_before": a.used,
            "used_after": b.used,
        }
        yield _finding("DF005", "; ".join(parts), b, bytes_=b.size_bytes, evidence=facts)
    if a.pattern != b.pattern:
        old, new = (g.pattern.replace("_", " ") or "none" for g in (a, b))
        facts = {"before": a.pattern, "after": b.pattern}
        yield _finding("DF006", f"pattern: {old} -> {new}", b, bytes_=b.size_bytes, evidence=facts)
    if _differ(a.files, b.files, limits.count_share):
        facts = {"before": a.files, "after": b.files}
        message = f"number of files: {a.files:,} -> {b.files:,}"
        yield _finding("DF007", message, b, bytes_=b.size_bytes, evidence=facts)
    yield from _compare_volumes([a], [b], limits)


def _names(verb: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[str]:
    gone, fresh = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    if fresh:
        yield f"now {verb} {', '.join(fresh)}"
    if gone:
        yield f"no longer {verb} {', '.join(gone)}"


def _compare_volumes(
    old: list[FileProfile], new: list[FileProfile], limits: Tolerances
) -> Iterator[Finding]:
    for name, label in (("size_bytes", "size"), ("read_bytes", "bytes read")):
        a, b = (sum(getattr(g, name) for g in groups) for groups in (old, new))
        if abs(a - b) >= limits.volume_bytes and _differ(a, b, limits.volume_share):
            facts: dict[str, object] = {"before": a, "after": b, "what": name}
            message = f"{label}: {size(a)} -> {size(b)}"
            yield _finding("DF008", message, new[0], bytes_=b, evidence=facts)


@dataclass(frozen=True)
class StageProfile:
    """Tasks of one type."""

    type: str
    tasks: int
    failed: int


@dataclass(frozen=True)
class FileProfile:
    """Files of one mask with the same writing and reading task types."""

    mask: str
    role: str
    made: tuple[str, ...]
    used: tuple[str, ...]
    files: int
    size_bytes: int
    read_bytes: int
    pattern: str  # of most of the files
    template: str
    examples: tuple[bytes, ...]

    @property
    def ending(self) -> str:
        """File name extension: `.fits` of `p_*.fits`."""
        name = self.mask.rsplit("/", 1)[-1]
        return name[name.rfind(".") :] if "." in name else ""


@dataclass(frozen=True)
class Profile:
    """Stages and file groups of a run."""

    stages: dict[str, StageProfile]
    groups: tuple[FileProfile, ...]


_STAGES = """
    SELECT kind AS type, count(*) AS tasks, count(*) FILTER (exit_status <> 0) AS failed
    FROM work JOIN kinds USING (task) WHERE attempt = 1 GROUP BY 1 ORDER BY 1"""
_GROUPS = """
    WITH p AS (SELECT file, list_sort(list(DISTINCT kind)) AS made
               FROM writers JOIN kinds USING (task) GROUP BY file),
         c AS (SELECT file, list_sort(list(DISTINCT kind)) AS used,
                      sum(unique_bytes)::BIGINT AS read_bytes
               FROM readers JOIN kinds USING (task) GROUP BY file),
         l AS (SELECT file, min(pattern) AS pattern FROM patterns
               WHERE edge IS NULL AND "primary" GROUP BY file),
         one AS (SELECT any_value(f.path) AS path, f.mask, any_value(f.template) AS template,
                        arg_max(f.role, f.version) AS role, max(f.size_bytes) AS size_bytes,
                        list_sort(list_distinct(flatten(list(coalesce(p.made, []))))) AS made,
                        list_sort(list_distinct(flatten(list(coalesce(c.used, []))))) AS used,
                        sum(c.read_bytes)::BIGINT AS read_bytes,
                        mode(l.pattern ORDER BY l.pattern) AS pattern
                 FROM files f LEFT JOIN p USING (file) LEFT JOIN c USING (file)
                      LEFT JOIN l USING (file)
                 WHERE f.role IN ('input', 'intermediate', 'output')
                   AND (p.file IS NOT NULL OR c.file IS NOT NULL)
                 GROUP BY f.named, f.mask)
    SELECT mask, role, made, used, count(*) AS files,
           coalesce(sum(size_bytes), 0)::BIGINT AS size_bytes,
           coalesce(sum(read_bytes), 0)::BIGINT AS read_bytes,
           coalesce(mode(pattern ORDER BY pattern), '') AS pattern, min(template) AS template,
           min(path, 5) AS examples
    FROM one GROUP BY mask, role, made, used ORDER BY mask, role, made, used"""


def profile(analysis: Analysis) -> Profile:
    """Return the profile of a run: first attempts of its tasks, without engines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = masks_of(pc.fill_null(analysis.tasks.column("type"), "")).dictionary_encode()
    known = types.dictionary
    words = sorted(known.to_pylist())  # a kind is an index: kinds sort like their words
    kinds = pc.index_in(known, pa.array(words, pa.string())).take(types.indices)
    with query.connect(analysis) as con:
        con.register("kinds", pa.table({"task": analysis.tasks.column("task"), "kind": kinds}))
        stages = [StageProfile(words[r.pop("type")], **r) for r in query.rows(con, _STAGES)]
        groups = [_group(row, words) for row in query.rows(con, _GROUPS)]
    return Profile({s.type: s for s in stages}, tuple(groups))


def _group(row: dict[str, Any], words: list[str]) -> FileProfile:
    for name in ("made", "used"):
        row[name] = tuple(words[kind] for kind in row[name])
    row["examples"] = tuple(bytes(p) for p in row["examples"])
    return FileProfile(**row)


def diff(before: Analysis, after: Analysis, limits: Tolerances | None = None) -> list[Finding]:
    """Return the changes between two runs beyond the limits; empty for a repeated run."""
    return compare(profile(before), profile(after), limits or Tolerances())
