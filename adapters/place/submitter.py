"""Replacement of `sbatch`: requests from `run` a node for the job, and submits it with that node,
or unchanged.

A job is submitted unchanged, by this process itself, if its words, script or environment select
nodes, if it is more than one plain job, or if `run` does not know it. If Slurm rejects the job with
a node, it is submitted again without. Imports are few and from the standard library only, because
this runs once per job.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tracehint.adapters.place.starter import become, end, wait_for

ASK, TELL = b"ask", b"tell"
PATIENCE_S = 20.0  # for an answer: longer than the timeout of Slurm commands
MOST_BYTES = 1 << 20  # of a script
# Options that select nodes, or make it something other than one job that runs when it can.
_LONG = (
    "--nodelist", "--nodefile", "--exclude", "--constraint", "--cluster-constraint", "--prefer",
    "--array", "--wait", "--clusters", "--dependency", "--test-only", "--contiguous", "--switches",
    "--spread-job", "--help", "--usage", "--version",
)  # fmt: skip  # a table
_SHORT = "wFxCaWMdhV"
_FLAGS = "HIkOQsuv"  # short options without a value
_MAY_BE_ONE = {"--nodes": "N", "--ntasks": "n"}  # allowed with the value 1
_VARIABLES = (
    "SBATCH_ARRAY_INX",
    "SBATCH_CLUSTERS",
    "SBATCH_CLUSTER_CONSTRAINT",
    "SBATCH_CONSTRAINT",
    "SBATCH_PREFER",
    "SBATCH_REQ_SWITCH",
    "SBATCH_SPREAD_JOB",
    "SBATCH_WAIT",
    "SLURM_CLUSTERS",
    "SLURM_HOSTFILE",
)
_NUMBER = re.compile(rb"(?:^|job )(\d{1,10})(?:;\S*)?$", re.M)
_REFUSED = b"submission failed"
_UNSURE = (b"timed out", b"contact", b"communication", b"zero bytes")  # it may be submitted


def main() -> None:
    """Submit the job; returns only if that is impossible."""
    address, program, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
    status = None
    if (known := ask_for_node(address, argv[1:])) is not None:
        status = submit_job(address, program, argv, *known)
    if status is None:
        become(program, argv, os.environ)
    end(status)


def ask_for_node(address: str, words: Sequence[str]) -> tuple[bytes, bytes] | None:
    """Return ticket and node (empty: any) of the job; None: submit it unchanged, also on errors."""
    with suppress(Exception):
        text = read_job(words, os.environ)
        ticket, node = send_message(address, ASK, text).split(b"\0") if text else (b"", b"")
        return (ticket, node) if ticket else None
    return None


def read_job(words: Sequence[str], env: Mapping[str, str]) -> bytes:
    """Return the text that identifies the job's task; empty: submit it unchanged."""
    if any(name in env for name in _VARIABLES):
        return b""
    at, script = next(((i, t) for i, w in enumerate(words) if (t := script_text(w))), (None, b""))
    lines = (line for line in script.splitlines() if line.startswith(b"#SBATCH"))
    inside = [w for line in lines for w in shlex.split(os.fsdecode(line[7:]), comments=True)]
    if restricts_nodes(words[:at]) or restricts_nodes(inside):
        return b""
    if command := env.get("BATCH_JOB_COMMAND"):  # of Makeflow
        return os.fsencode(command)
    texts = [os.fsencode(word) for word in words] + [script]
    if at is not None and os.path.basename(words[at]) == ".command.run":  # noqa: PTH119 (Nextflow)
        texts.append(script_text(words[at].removesuffix("run") + "sh"))
    return b"\n".join(texts)


def script_text(path: str) -> bytes:
    """Return the text of a job script; empty if it is not one."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        text = os.read(fd, MOST_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
    return text if text.startswith(b"#!") else b""


def restricts_nodes(words: Sequence[str]) -> bool:
    """Whether sbatch options select nodes, or request more than one plain job."""
    for at, word in enumerate(words):
        name, given, value = word.partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        if name.startswith("--") and name in _MAY_BE_ONE:
            if (value if given else following) != "1":
                return True
        elif name.startswith("--"):
            if any(option.startswith(name) for option in (*_LONG, *_MAY_BE_ONE)):
                return True  # also abbreviated options
        elif word.startswith("-"):
            rest = word[1:].lstrip(_FLAGS)
            if rest[:1] in _MAY_BE_ONE.values() and (rest[1:] or following) != "1":
                return True
            if rest and rest[0] in _SHORT:
                return True
    return False


def send_message(address: str, *fields: bytes) -> bytes:
    """Send a message and return the answer of `run`; reports have no answer."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_S)
        line.connect(address)
        line.sendall(b"\0".join(fields))
        line.shutdown(socket.SHUT_WR)
        answer = b""
        while fields[0] == ASK and (part := line.recv(4096)):
            answer += part
    return answer


def submit_job(
    address: str, program: str, argv: Sequence[str], ticket: bytes, node: bytes
) -> int | None:
    """Submit the job and report its number, if any, to `run`. Return the wait status; None if Slurm
    rejects the node."""
    pinned = [f"--nodelist={os.fsdecode(node)}"] if node else []
    try:
        status, out, err = run(program, [argv[0], *pinned, *argv[1:]])
    except OSError:
        return None  # sbatch was not started
    number = _NUMBER.search(out) if not status else None
    answered = False
    with suppress(OSError):
        send_message(address, TELL, ticket, number[1] if number else b"")
        answered = True
    if node and number and not answered:  # nothing else would release the job
        with suppress(OSError):
            freed = ["scontrol", "update", f"JobId={os.fsdecode(number[1])}", "ReqNodeList="]
            run(freed[0], freed)
    message = err.lower()
    if node and status and _REFUSED in message and not any(text in message for text in _UNSURE):
        return None
    for fd, text in ((2, err), (1, out)):
        with suppress(OSError):
            while text:
                text = text[os.write(fd, text) :]
    return status


def run(program: str, argv: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Run a program; return its wait status and output."""
    files = [os.memfd_create("out"), os.memfd_create("err")]
    actions = [(os.POSIX_SPAWN_DUP2, fd, at) for fd, at in zip(files, (1, 2), strict=True)]
    status = wait_for(program, argv, os.environ, actions)
    out, err = (os.pread(fd, MOST_BYTES, 0) for fd in files)
    return status, out, err
