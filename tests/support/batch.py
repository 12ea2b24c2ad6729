"""Stand-ins for PBS and LSF: qsub and bsub as users type them, and a server that starts the jobs.

The server is a thread of the test, so no job is a child of its submitter. As in the real systems, a
PBS job gets its own environment and, with -V, that of qsub, and starts in the home directory; an
LSF job gets the environment and the directory of bsub.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_S = 0.05
_SUBMIT = """#!{python} -I
import json, os, pathlib, re, sys, time
spool, kind, words = pathlib.Path("{spool}"), "{kind}", sys.argv[1:]
wait, whole, array, rest = False, kind == "bsub", "", []
while words:
    word = words.pop(0)
    if word in ("-V", "-K"):
        whole, wait = whole or word == "-V", wait or word == "-K"
    elif word == "-W":
        wait = words.pop(0) == "block=true"
    elif word == "-J":
        name = words.pop(0)
        if kind == "bsub" and "[" in name:
            name = name.partition("[")[2].rstrip("]")
        if re.fullmatch(r"\\d+-\\d+", name):
            array = name
    else:
        rest = [word, *words]
        break
job = {{"words": rest, "cwd": os.getcwd(), "env": dict(os.environ), "whole": whole,
       "array": array, "kind": kind}}
number = 1
while True:
    try:
        fd = os.open(spool / f"{{number}}.new", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        break
    except FileExistsError:
        number += 1
os.write(fd, json.dumps(job).encode())
os.close(fd)
os.rename(spool / f"{{number}}.new", spool / f"{{number}}.job")
(spool / f"{{number}}.new").touch()
print(f"{{number}}.server" if kind == "qsub" else f"Job <{{number}}> is submitted to queue <q>.")
sys.stdout.flush()
while wait and not (spool / f"{{number}}.end").exists():
    time.sleep(0.05)
sys.exit(int((spool / f"{{number}}.end").read_text()) if wait else 0)
"""


def _jobs(number: str, job: dict[str, object]) -> Iterator[dict[str, str]]:
    """Yield the variables of each job of one submission."""
    first, _, last = str(job["array"] or "0-0").partition("-")
    for index in range(int(first), int(last) + 1):
        many = bool(job["array"])
        if job["kind"] == "bsub":
            yield {"LSB_JOBID": number, "LSB_JOBINDEX": str(index), "LSB_HOSTS": "here"}
        elif many:
            yield {"PBS_JOBID": f"{number}[{index}].server", "PBS_ARRAY_INDEX": str(index)}
        else:
            yield {"PBS_JOBID": f"{number}.server"}


def _start(number: str, path: Path) -> None:
    job = json.loads(path.read_text())
    home = str(path.parent)
    plain = {"PATH": os.environ["PATH"], "HOME": home, "PBS_ENVIRONMENT": "PBS_BATCH"}
    status = 0
    for variables in _jobs(number, job):
        env = {**(job["env"] if job["whole"] else plain), **variables}
        if job["kind"] == "qsub":
            env["PBS_O_WORKDIR"] = job["cwd"]
        words = ["/bin/sh", *job["words"]] if job["kind"] == "qsub" else job["words"]
        if job["kind"] == "qsub":
            words[1] = str(Path(job["cwd"], words[1]))
        cwd = home if job["kind"] == "qsub" else job["cwd"]
        done = subprocess.run(words, env=env, cwd=cwd, capture_output=True)
        (path.parent / f"{number}.out").write_bytes(done.stdout + done.stderr)
        status = status or done.returncode
    written = path.with_suffix(".part")  # readers must find the end file complete
    written.write_text(str(status))
    written.rename(path.with_suffix(".end"))


@contextmanager
def batch(folder: Path) -> Iterator[Path]:
    """Yield a directory for PATH with qsub and bsub; run their jobs meanwhile."""
    programs, spool = folder / "programs", folder / "spool"
    programs.mkdir(parents=True)
    spool.mkdir()
    for kind in ("qsub", "bsub"):
        text = _SUBMIT.format(python=sys.executable, spool=spool, kind=kind)
        (programs / kind).write_text(text)
        (programs / kind).chmod(0o755)
    ended = threading.Event()

    def serve() -> None:
        while not ended.wait(_LOOK_S):
            for path in sorted(spool.glob("*.job")):
                _start(path.stem, path)
                path.unlink()

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield programs
    finally:
        ended.set()
        server.join()
