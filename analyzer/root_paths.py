"""The paths of a run below its data roots: which are software, and what each is called there.

All work is vectorised over distinct paths. Paths are absolute bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.base import below
from tracehint.analyzer.path_rules import BOOKKEEPING, RUNTIME, SOFTWARE, in_system, is_runtime

if TYPE_CHECKING:
    import numpy.typing as npt


def is_bookkeeping(paths: Any, roots: Sequence[bytes]) -> Any:
    """Per path: whether a workflow engine keeps it for itself (logs, metadata, job scripts)."""
    relative, _ = _split(pa.array(paths, pa.binary()), roots)
    return pc.match_substring_regex(relative, BOOKKEEPING).fill_null(False)


def classify_paths(paths: Any, roots: Sequence[bytes]) -> Any:
    """Per path: true for software (outside the roots, environments, caches, engines' own files)."""
    whole = pa.array(paths, pa.binary())
    relative, root = _split(whole, roots)
    # Each look at all paths counts, and few of them have anything of it anywhere.
    odd = pc.match_substring_regex(whole, f"{SOFTWARE}|{BOOKKEEPING}|{RUNTIME}").fill_null(False)
    some = relative.filter(odd)
    found = pc.match_substring_regex(some, f"{SOFTWARE}|{BOOKKEEPING}")
    found = pc.or_(found, is_runtime(whole.filter(odd)))
    software = pc.replace_with_mask(odd, odd, found)
    if b"/" in roots:  # below it lies the system too; other roots inside it were asked for
        inside = root == list(roots).index(b"/")
        software = pc.or_(software, pa.array(in_system(whole) & inside))
    answer = pc.or_(pc.less(pa.array(root), 0), software)
    return pc.or_(answer, _in_environments(whole, whole.filter(odd), roots))


def _in_environments(paths: Any, near: Any, roots: Sequence[bytes]) -> Any:
    """Paths below a virtual environment or conda prefix, found by its marker among those in
    `near`."""
    marks = pc.extract_regex(pc.unique(near), r"(?s)^(?P<prefix>.*)/(?:pyvenv\.cfg|conda-meta/.*)$")
    prefixes = pc.unique(marks.drop_null().field("prefix")).to_pylist()
    answer = pa.array(np.zeros(len(paths), bool))
    for prefix in sorted(prefixes)[:256]:
        # a root inside the environment was asked for
        if prefix and not any(below(root, prefix) for root in roots):
            answer = pc.or_(answer, pc.starts_with(paths, prefix + b"/"))
    return answer


def relative_paths(paths: Any, roots: Sequence[bytes]) -> Any:
    """Paths below a root relative to it, others unchanged; the root itself is `.`.

    Several roots can give two paths the same text: then all but those of the first root in
    `roots` stay absolute. Give all paths of a run in one call.
    """
    whole = pa.array(paths, pa.binary())
    tails, root = _split(whole, roots)
    inside = root >= 0
    here = pa.array(inside & (pc.binary_length(tails).fill_null(0).to_numpy(False) > 1))
    short = pc.if_else(pa.array(inside), pa.scalar(b".", pa.binary()), whole)
    short = pc.replace_with_mask(short, here, _cut(tails.filter(here), 1))
    if len(roots) < 2:
        return short
    encoded = short.dictionary_encode()
    code = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    lowest = np.full(len(encoded.dictionary) + 1, len(roots))
    np.minimum.at(lowest, code[inside], root[inside])
    take = inside & (root == lowest[code])
    return pc.if_else(pa.array(take), short, whole)


def _split(paths: Any, roots: Sequence[bytes]) -> tuple[Any, npt.NDArray[np.int64]]:
    """Per path the part below its (longest) root, with a leading /, and the root's number or -1."""
    tails, number = paths, np.full(len(paths), -1, np.int64)
    for i in sorted(range(len(roots)), key=lambda i: -len(roots[i])):
        root = roots[i].rstrip(b"/")
        hit = pc.or_(pc.starts_with(paths, root + b"/"), pc.equal(paths, roots[i]))
        fresh = hit.fill_null(False).to_numpy(zero_copy_only=False) & (number < 0)
        if fresh.any():
            number[fresh] = i
        if root and fresh.any():
            mask = pa.array(fresh)
            cut = _cut(paths.filter(mask), len(root))
            tails = pc.replace_with_mask(tails, mask, cut)
    return tails, number


def _cut(paths: Any, start: int) -> Any:
    """Each path without its first `start` bytes (binary_slice without a stop fails in PyArrow)."""
    return pc.binary_replace_slice(paths, 0, start, b"")
