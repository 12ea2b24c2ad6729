"""Classification of paths by name with regex tables: system, software, engine bookkeeping."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

# Installed software and the kernel's own file systems; /dev/shm holds data.
SYSTEM_PREFIXES = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/proc", "/sys",
    "/dev", "/boot", "/opt", "/snap", "/nix", "/gnu", "/cvmfs", "/run", "/var", "/selinux",
    "/System", "/Library", "/Applications",
)  # fmt: skip  # a table
NOT_SYSTEM = ("/dev/shm", "/var/tmp", "/run/user", "/var/scratch", "/opt/scratch")
_SYSTEM = (
    "^(?:" + "|".join(map(re.escape, SYSTEM_PREFIXES)) + ")(?:/|$)",
    "^(?:" + "|".join(map(re.escape, NOT_SYSTEM)) + ")(?:/|$)",
)
# Below a root, matched against "/" + the path relative to it.
SOFTWARE = "|".join(
    (
        "/(?:site-packages|dist-packages|__pycache__|node_modules|conda-meta|pkgs/cache)/",
        r"/\.(?:git|svn|hg|bzr|tox|nox|venv|virtualenv|mypy_cache|pytest_cache|ruff_cache|cache|conda)/",
        r"/\.(?:singularity|apptainer|docker|npm|cargo|rustup|julia|R|local|config|ipython|jupyter)/",
        r"/\.(?:pyenv|rbenv|nvm|asdf|sdkman|mamba|micromamba|nix-profile|m2|gradle|java)/",
        r"/lib(?:32|64)?/python\d(?:\.\d+)?/",
        "/renv/library/",
        "/work/(?:conda|singularity|apptainer)/",
        r"\.(?:pyc|sif|simg|squashfs)$",
        "/pyvenv\\.cfg$",
        r"/\.(?:python-version|tool-versions)$",
    )
)
# Bookkeeping files of workflow engines, which are not data of the workflow.
BOOKKEEPING = "|".join(
    (
        r"/\.snakemake/(?:metadata|log|locks|incomplete|auxiliary|scripts|conda|conda-archive|"
        r"singularity|iocache|source-cache|unit-tests|[^/]*$)",
        r"/\.nextflow(?:/|\.log|[^/]*$)",
        r"/\.command\.(?:run|sh|begin|log|out|err|trace|env|stub)$",
        r"/\.exitcode$",
        r"\.makeflowlog$",
        r"\.batchlog$",
        r"/\.makeflow(?:\.|/)",
        r"/makeflow\.failed\.",
        r"/\.parallel/",
        r"/runinfo/\d+/",
        r"/vine-run-info/",
        r"/\.lineage/",
        r"/\.parsl",
        r"(?:^|/)\.tracehint/",  # files of run and apply
        r"\.tracehint/(?:[^/]*$|bin/)",  # files that emit writes next to an annotated workflow
    )
)

# An absolute path that is not normalised: `.`, `..`, doubled slashes or a trailing slash.
ODD = r"//|/\.\.?(?:/|$)|/$"

# Files of MPI, other runtimes and `run` in memory or below /tmp for their own messages and locks.
RUNTIME = "|".join(
    (
        r"/tracehint-[a-z0-9_]{8}/table(?:\.journal\.[^/]+)?$",  # adapters/creation/launch.py
        r"/ompi\.[^/]+\.\d+/(?:pid|jf)\.\d+(?:/|$)",
        r"/pmix_dstor[^/]*/",
        r"^/dev/shm/(?:vader_segment|sm_segment|sem\.|osc_(?:rdma|sm)|open_mpi\.|mpich_shm|"
        r"psm[23]?_shm|ucx_shm|cma_shm|nccl-|intel_shm|Intel_MPI|psm_|pym-)[^/]*$",
    )
)


def is_system(paths: Any) -> npt.NDArray[np.bool_]:
    """Return per path whether it is below a system prefix or belongs to a runtime."""
    answer = is_runtime(paths).fill_null(False).to_numpy(zero_copy_only=False)
    return np.asarray(answer | in_system(paths), bool)


def in_system(paths: Any) -> npt.NDArray[np.bool_]:
    """Return per path whether it is below a system prefix."""
    inside = pc.match_substring_regex(paths, _SYSTEM[0]).fill_null(False)
    answer = np.array(inside.to_numpy(zero_copy_only=False), bool)
    outside = pc.match_substring_regex(paths.filter(inside), _SYSTEM[1])  # few paths
    answer[answer] = ~outside.to_numpy(zero_copy_only=False)
    return answer


def is_runtime(paths: Any) -> Any:
    """Return per path whether a runtime (MPI, ...) uses it for its own messages and locks."""
    return pc.match_substring_regex(paths, RUNTIME)


def looks_like_data(paths: Any) -> npt.NDArray[np.bool_]:
    """Return per path whether it is no system, software or bookkeeping file, whatever the roots."""
    other = pc.match_substring_regex(paths, f"{SOFTWARE}|{BOOKKEEPING}").fill_null(False)
    software = is_system(paths) | other.to_numpy(zero_copy_only=False)
    return np.asarray(~software, bool)


def data_names(paths: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Apply `looks_like_data` to a column, once per distinct name; null is False."""
    found = [np.zeros(0, bool)]
    for part in pc.dictionary_encode(paths).chunks:
        data = np.append(looks_like_data(part.dictionary), False)
        found.append(data[part.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    return np.concatenate(found)
