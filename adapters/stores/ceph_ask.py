"""Questions to Ceph's monitors: by librados, which `ceph` itself uses, or by `ceph` where it lacks.

On a loaded machine six questions took 0.2 s through librados, the start of a process included, and
2 to 6 s through `ceph`. The functions below are librados' public C interface (librados.h).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tracehint.errors import MissingDependencyError

TIMEOUT_S = 60
LIBRARY = "librados.so.2"


@dataclass(frozen=True)
class Question:
    """A command of the monitors and its arguments, in order."""

    prefix: str
    words: Mapping[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """For `ceph`; every word must be a plain name."""
        return " ".join([self.prefix, *self.words.values()])

    def data(self) -> bytes:
        """For librados."""
        return json.dumps({"prefix": self.prefix, **self.words, "format": "json"}).encode()


def ask_ceph(questions: Sequence[Question]) -> list[str]:
    """An answer in JSON for each. Raises OSError with Ceph's words, or MissingDependencyError."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return _by_tool(questions)
    with _connected(library) as cluster:
        return [_answer(library, cluster, question) for question in questions]


@contextmanager
def _connected(library: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
    """A connection as `client.admin`, with the configuration that CEPH_CONF names, or the usual."""
    cluster = ctypes.c_void_p()
    user = os.environ.get("CEPH_ID", "admin").encode()
    _check(library.rados_create(ctypes.byref(cluster), user), "no client of Ceph can be made")
    try:
        _check(library.rados_conf_read_file(cluster, None), "no configuration of Ceph is there")
        library.rados_conf_parse_env(cluster, None)
        for option in (b"rados_mon_op_timeout", b"client_mount_timeout"):
            library.rados_conf_set(cluster, option, b"%d" % TIMEOUT_S)
        _check(library.rados_connect(cluster), "Ceph's monitors cannot be reached")
        # Without authentication a question may overtake the map that names the cluster.
        _check(library.rados_wait_for_latest_osdmap(cluster), "Ceph's map does not come")
        yield cluster
    finally:
        library.rados_shutdown(cluster)


def _answer(library: ctypes.CDLL, cluster: ctypes.c_void_p, question: Question) -> str:
    command = (ctypes.c_char_p * 1)(question.data())
    out, said = ctypes.c_void_p(), ctypes.c_void_p()
    length, said_length = ctypes.c_size_t(), ctypes.c_size_t()
    code = library.rados_mon_command(
        cluster,
        command,
        ctypes.c_size_t(1),
        None,
        ctypes.c_size_t(0),
        ctypes.byref(out),
        ctypes.byref(length),
        ctypes.byref(said),
        ctypes.byref(said_length),
    )
    try:
        text = ctypes.string_at(said, said_length.value) if said else b""
        _check(code, text.decode("utf-8", "backslashreplace")[:200] or "Ceph refused to answer")
        return ctypes.string_at(out, length.value).decode("utf-8", "backslashreplace").strip()
    finally:
        for buffer in (out, said):
            library.rados_buffer_free(buffer)


def _check(code: int, what: str) -> None:
    if code < 0:
        raise OSError(-code, f"{what} ({errno.errorcode.get(-code, -code)})")


def _by_tool(questions: Sequence[Question]) -> list[str]:
    """One start of `ceph` for all of them."""
    if shutil.which("ceph") is None:
        raise MissingDependencyError(
            "neither librados nor ceph is installed", "Debian: apt-get install ceph-common"
        )
    lines = "".join(f"{question.line()}\n" for question in questions)
    try:
        done = subprocess.run(
            ["ceph", "-f", "json"], input=lines.encode(), capture_output=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, "ceph did not answer") from None
    out = [line for line in done.stdout.decode("utf-8", "backslashreplace").splitlines() if line]
    if done.returncode != 0 or len(out) != len(questions):
        said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        raise OSError(errno.EIO, said[-1][:200] if said else "ceph gave no answer")
    return out
