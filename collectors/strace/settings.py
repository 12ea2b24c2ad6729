"""How a log is read, and what of it is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tracehint.collectors.strace.model import FileRec, Ofd


@dataclass(slots=True)
class Maybe:
    """An open with O_CREAT of a file of which it is not yet known whether it was there."""

    file: FileRec
    open_id: int
    proc: int
    t_ns: int
    name_seq: int  # its row in `names`
    truncated: bool  # O_TRUNC was given


@dataclass(slots=True)
class StraceSettings:
    """How to read a log. Times in ns; `uid` -1: unknown."""

    host: str = "localhost"
    uid: int = -1
    cwd: bytes = b""
    started_ns: int = 0
    initial: dict[int, Ofd] = field(default_factory=dict)  # the first process's descriptors
    initial_files: list[FileRec] = field(default_factory=list)  # their files, ids 1, 2, ...
    # real path of a directory on the recording machine; None where it is not at hand
    real_dir: Callable[[bytes], bytes] | None = None
    complete: bool = False  # every call that makes a descriptor of a file is in the log
