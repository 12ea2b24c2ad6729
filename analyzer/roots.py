"""Data roots: the directories that hold a run's workflow data.

All work is vectorised over distinct paths. Paths are absolute bytes.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import distinct, encode_column, numbers
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.path_rules import (
    BOOKKEEPING,
    ODD,
    RUNTIME,
    SOFTWARE,
    in_system,
    is_runtime,
    is_system,
    looks_like_data,
)
from tracehint.analyzer.workflow_directory import (
    base_folder,
    below,
    processes_of,
    worked_in,
    workplaces,
)
from tracehint.schemas.compact import different, wide

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracehint.analyzer.model import Segmentation
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle


MAX_ROOTS = 16
_PROBE_BYTES = 64
_MAX_RESOLVED = 1000  # arguments of the command whose symbolic links are resolved
_SHARED_FOLDERS = (b"/var/tmp", b"/dev/shm", b"/run/user")
_HOME = re.compile(rb"^(?:/root|/(?:home|Users)/[^/]+)$")
_HIDDEN_IN_HOME = re.compile(rb"^(?:/root|/(?:home|Users)/[^/]+)/\.")


def data_roots(
    bundle: Bundle, given: Sequence[str] = (), segmented: Segmentation | None = None
) -> list[bytes]:
    """Return the absolute roots of a run, longest first; `given` or recorded ones take precedence.

    With `segmented`, files that only engine processes used (temporary files) make no root.
    """
    cwd = started_in(bundle.manifest)
    chosen = list(given) or list(bundle.manifest.data_roots)
    if chosen:
        raw = (c.encode("utf-8", "surrogateescape") for c in chosen)
        roots = {_clean(posixpath.join(cwd, r)) for r in raw}
    else:
        roots = _derive_roots(bundle, cwd, segmented)
        give_back()
    return sorted(roots, key=lambda r: (-len(r), r))


def started_in(manifest: Manifest) -> bytes:
    """Return the absolute directory in which the run was started."""
    return _clean(manifest.cwd.encode("utf-8", "surrogateescape") or b"/")


def _derive_roots(bundle: Bundle, cwd: bytes, segmented: Segmentation | None) -> set[bytes]:
    if not bundle.manifest.cwd:  # imported: the directory of the run is unknown
        found = _outermost(_merge_siblings(_used_folders(bundle)))
        return found or {cwd}
    written = _written_folders(bundle, segmented) if cwd != b"/" else set()  # nothing is outside
    give_back()
    found = set(_argument_folders(bundle, cwd)) | written
    base = cwd
    if segmented is not None:
        worked = worked_in(bundle, segmented)
        base = base_folder(bundle, segmented, worked, cwd)
        used = sorted(found)
        places = workplaces(worked, cwd)
        found |= {place for place in places if any(below(d, place) for d in used)}
    found = {d for d in found if not below(d, cwd) and _may_be_root(d)}
    found = _outermost(_merge_siblings(found))
    return found if found and _is_unused_system_folder(bundle, base) else {*found, base}


def _is_unused_system_folder(bundle: Bundle, cwd: bytes) -> bool:
    """Whether `cwd` is a system directory in which the run wrote nothing."""
    opens = bundle.tables["opens"]
    wrote = different(opens.column("path").filter(pc.greater(opens.column("write_ops"), 0)))
    inside = pc.starts_with(wrote, cwd.rstrip(b"/") + b"/")
    return bool(is_system(pa.array([cwd], pa.binary()))[0]) and not pc.any(inside).as_py()


def _used_folders(bundle: Bundle) -> set[bytes]:
    """Return the folders of all data that the run used or declares."""
    opens = bundle.tables["opens"]
    counters = (pc.greater(opens.column(name), 0) for name in ("read_ops", "write_ops"))
    used = pc.or_(pc.or_(*counters), opens.column("created"))
    unique = _absolute([different(opens.column("path").filter(used))], _declared_paths(bundle))
    return _folders_of(unique.filter(pa.array(looks_like_data(unique))))


def _declared_paths(bundle: Bundle, direction: str | None = None) -> pa.Array:
    """Return the distinct declared paths: inputs (in), outputs (out) or both."""
    table = bundle.tables["declared_io"]
    code, paths = encode_column(table, "path")
    if direction is not None:
        way, words = encode_column(table, "direction")
        code = code[pc.equal(words, direction).to_numpy(zero_copy_only=False)[way]]
    is_declared = np.zeros(len(paths), bool)
    is_declared[code] = True
    return paths.filter(pa.array(is_declared))


def _absolute(parts: Iterable[pa.ChunkedArray], declared: pa.Array | None = None) -> pa.Array:
    """Return the distinct absolute paths of the parts and the absolute declared ones: a relative
    path has no known folder."""
    used = pa.chunked_array([c for part in parts for c in part.chunks], pa.binary())
    known = [pc.unique(used), *([] if declared is None else [declared])]
    return pa.concat_arrays([names.filter(pc.starts_with(names, b"/")) for names in known])


def _clean(path: bytes) -> bytes:
    return b"/" + posixpath.normpath(path).lstrip(b"/.") if path[:1] != b"/" else _normalize(path)


def _normalize(path: bytes) -> bytes:
    text = posixpath.normpath(path)
    return text[1:] if text.startswith(b"//") else text


def _may_be_root(folder: bytes) -> bool:
    """Whether it is neither /, a whole home directory, a hidden folder in one, nor the system's."""
    if folder == b"/" or _HOME.match(folder) or _HIDDEN_IN_HOME.match(folder + b"/"):
        return False
    return not bool(is_system(pa.array([folder], pa.binary()))[0])


def _argument_folders(bundle: Bundle, cwd: bytes) -> Iterable[bytes]:
    """Yield the folder of each command argument that the run used: itself if it is a folder."""
    paths = argument_names(bundle.manifest, cwd)
    if not paths:
        return
    wanted = pa.array(sorted(paths), pa.binary())
    for table in ("opens", "names"):
        known = different(bundle.tables[table].column("path"))
        hit = pc.is_in(wanted, value_set=known.combine_chunks())
        for path in wanted.filter(hit).to_pylist():
            folder = pc.any(pc.starts_with(known, path.rstrip(b"/") + b"/")).as_py()
            yield path if folder else posixpath.dirname(path)


def argument_names(manifest: Manifest, cwd: bytes) -> set[bytes]:
    """Return the command's arguments as paths from `cwd`, as given and with symbolic links
    resolved, as the kernel reports files. Links of a run on another machine are not resolved."""
    words = [w.encode("utf-8", "surrogateescape") for w in manifest.command[1:]]
    words = [w.partition(b"=")[2] if w[:1] == b"-" else w for w in words]
    paths = {_normalize(posixpath.join(cwd, w)) for w in words if w and len(w) < 4096}
    return paths | {posixpath.realpath(p) for p in sorted(paths)[:_MAX_RESOLVED] if b"\0" not in p}


def _used_by_jobs(bundle: Bundle, segmented: Segmentation) -> Any:
    """Return the identifiers of files that a task other than an engine process opened."""
    opens = bundle.tables["opens"]
    engines = processes_of(segmented, engine=True).to_numpy(zero_copy_only=False)
    jobs = np.isin(numbers(opens, "proc"), engines, invert=True)
    return pa.array(distinct(numbers(opens, "file")[jobs]), pa.int64())


def _probes(bundle: Bundle) -> Any:
    """Return the identifiers of deleted files that only one process opened and wrote no more than
    `_PROBE_BYTES` to: programs create such a file to test a directory."""
    opens, files = bundle.tables["opens"], bundle.tables["files"]
    gone = files.filter(files.column("deleted")).column("file").combine_chunks()
    opens = opens.filter(pc.is_in(wide(opens.column("file")), value_set=gone))  # usually few
    uses = pa.table(
        {
            "file": opens.column("file"),
            "proc": opens.column("proc"),
            "bytes": opens.column("write_bytes"),
        }
    )
    sums = uses.group_by("file").aggregate([("bytes", "sum"), ("proc", "min"), ("proc", "max")])
    several = pc.not_equal(sums.column("proc_min"), sums.column("proc_max"))
    several = pc.or_(several, pc.greater(sums.column("bytes_sum"), _PROBE_BYTES))
    large = wide(sums.filter(several).column("file")).combine_chunks()
    return gone.filter(pc.invert(pc.is_in(gone, value_set=large)))


def _written_folders(bundle: Bundle, segmented: Segmentation | None) -> set[bytes]:
    """Return the folders outside the system in which the run wrote a file."""
    opens, names, files = (bundle.tables[t] for t in ("opens", "names", "files"))
    data = files.filter(pc.equal(files.column("kind"), "file")).column("file")
    data = data.filter(pc.invert(pc.is_in(data, value_set=_probes(bundle))))
    if segmented is not None:
        data = data.filter(pc.is_in(data, value_set=_used_by_jobs(bundle, segmented)))
    known = data.combine_chunks()
    wrote = pc.or_(pc.greater(opens.column("write_ops"), 0), opens.column("created"))
    of_known = np.isin(numbers(opens, "file"), known.to_numpy(zero_copy_only=False))
    wrote = pc.and_(wrote, pa.array(of_known))
    made = pc.is_in(names.column("op"), value_set=pa.array(["create", "rename", "link"]))
    made = pc.and_(made, pc.is_in(names.column("file"), value_set=known))
    kept = names.filter(made)
    parts = [
        different(opens.column("path").filter(wrote)),
        kept.column("path"),
        kept.column("new_path").drop_null(),
    ]
    alone = not bundle.tables["processes"].num_rows
    unique = _absolute(parts, _declared_paths(bundle, "out") if alone else None)
    return _folders_of(unique.filter(pc.invert(pa.array(is_system(unique)))))


def _folders_of(paths: Any) -> set[bytes]:
    """Return the folders of absolute paths."""
    folders = pc.unique(pc.replace_substring_regex(paths, rb"(?s)/[^/]*$", b""))
    odd = pc.match_substring_regex(folders, ODD)
    found = {folder or b"/" for folder in folders.filter(pc.invert(odd)).to_pylist()}
    return found | {_normalize(folder) for folder in folders.filter(odd).to_pylist()}


def _merge_siblings(folders: set[bytes]) -> set[bytes]:
    """Replace folders with a common parent by that parent, where it may be a root.

    Top-level parents (/scratch, /tmp) are shared by many users: used only above MAX_ROOTS.
    """
    result = _outermost(folders)
    while True:
        parents = Counter(posixpath.dirname(f) for f in result)
        merge = {
            p
            for p, n in parents.items()
            if n >= 2 and p.count(b"/") >= 2 and p not in _SHARED_FOLDERS and _may_be_root(p)
        }
        if not merge:
            break
        result = _outermost(result | merge)
    while len(result) > MAX_ROOTS:
        deepest = max(f.count(b"/") for f in result)
        up = {posixpath.dirname(f) if f.count(b"/") == deepest else f for f in result}
        result = _outermost({f for f in up if _may_be_root(f)})
    return result


def _outermost(folders: set[bytes]) -> set[bytes]:
    result: set[bytes] = set()
    for folder in sorted(folders):  # a parent sorts before what is below it
        if not any(p in result for p in _parents(folder)):
            result.add(folder)
    return result


def _parents(folder: bytes) -> Iterable[bytes]:
    while folder not in (b"/", b""):
        folder = posixpath.dirname(folder)
        yield folder


def classify_paths(paths: Any, roots: Sequence[bytes]) -> Any:
    """Return which paths are software (outside the roots, environments, caches, bookkeeping)."""
    whole = pa.array(paths, pa.binary())
    relative, root = _split(whole, roots)
    # A pass over all paths is expensive and few match: one combined pass selects candidates.
    odd = pc.match_substring_regex(whole, f"{SOFTWARE}|{BOOKKEEPING}|{RUNTIME}").fill_null(False)
    some = relative.filter(odd)
    found = pc.match_substring_regex(some, f"{SOFTWARE}|{BOOKKEEPING}")
    found = pc.or_(found, is_runtime(whole.filter(odd)))
    software = pc.replace_with_mask(odd, odd, found)
    if b"/" in roots:  # / contains the system; other roots inside the system are deliberate
        inside = root == list(roots).index(b"/")
        software = pc.or_(software, pa.array(in_system(whole) & inside))
    answer = pc.or_(pc.less(pa.array(root), 0), software)
    return pc.or_(answer, _in_environments(whole, whole.filter(odd), roots))


def _in_environments(paths: Any, near: Any, roots: Sequence[bytes]) -> Any:
    """Return per path whether it is below a virtual environment or conda prefix, detected by its
    marker among the paths in `near`."""
    marks = pc.extract_regex(pc.unique(near), r"(?s)^(?P<prefix>.*)/(?:pyvenv\.cfg|conda-meta/.*)$")
    prefixes = pc.unique(marks.drop_null().field("prefix")).to_pylist()
    answer = pa.array(np.zeros(len(paths), bool))
    for prefix in sorted(prefixes)[:256]:
        # a root inside the environment is deliberate
        if prefix and not any(below(root, prefix) for root in roots):
            answer = pc.or_(answer, pc.starts_with(paths, prefix + b"/"))
    return answer


def relative_paths(paths: Any, roots: Sequence[bytes]) -> Any:
    """Return paths below a root relative to it, others unchanged; the root itself is `.`.

    Paths of several roots can become equal: then only those of the first root in `roots` become
    relative. Pass all paths of a run in one call.
    """
    whole = pa.array(paths, pa.binary())
    tails, root = _split(whole, roots)
    inside = root >= 0
    below_root = pa.array(inside & (pc.binary_length(tails).fill_null(0).to_numpy(False) > 1))
    short = pc.if_else(pa.array(inside), pa.scalar(b".", pa.binary()), whole)
    short = pc.replace_with_mask(short, below_root, _cut_prefix(tails.filter(below_root), 1))
    if len(roots) < 2:
        return short
    encoded = short.dictionary_encode()
    code = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    lowest = np.full(len(encoded.dictionary) + 1, len(roots))
    np.minimum.at(lowest, code[inside], root[inside])
    take = inside & (root == lowest[code])
    return pc.if_else(pa.array(take), short, whole)


def _split(paths: Any, roots: Sequence[bytes]) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return per path its part below the longest root, with a leading /, and its root or -1."""
    tails, number = paths, np.full(len(paths), -1, np.int64)
    for i in sorted(range(len(roots)), key=lambda i: -len(roots[i])):
        root = roots[i].rstrip(b"/")
        hit = pc.or_(pc.starts_with(paths, root + b"/"), pc.equal(paths, roots[i]))
        fresh = hit.fill_null(False).to_numpy(zero_copy_only=False) & (number < 0)
        if fresh.any():
            number[fresh] = i
        if root and fresh.any():
            mask = pa.array(fresh)
            cut = _cut_prefix(paths.filter(mask), len(root))
            tails = pc.replace_with_mask(tails, mask, cut)
    return tails, number


def _cut_prefix(paths: Any, start: int) -> Any:
    """Cut the first `start` bytes of each path (binary_slice without a stop fails in PyArrow)."""
    return pc.binary_replace_slice(paths, 0, start, b"")
