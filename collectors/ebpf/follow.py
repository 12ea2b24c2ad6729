"""Following running processes: permission, the loader's options, notes in the bundle."""

from __future__ import annotations

import os
from pathlib import Path

from tracehint.collectors.base import Follow
from tracehint.collectors.hostinfo import process_status
from tracehint.errors import CollectorError

_CONTROLLERS = "cgroup.controllers"  # in every cgroup v2 directory, in none of version 1
_MAX_PID = 1 << 22


def check_follow(follow: Follow) -> None:
    """Raise CollectorError if the process or the cgroup cannot be followed."""
    if follow.listen >= 0:
        return
    if follow.cgroup:
        _check_cgroup(Path(follow.cgroup))
    else:
        _check_pid(follow.pid)


def _check_pid(pid: int) -> None:
    status = process_status(pid) if 0 < pid < _MAX_PID else {}
    if not status:
        raise CollectorError(f"--pid {pid}: no such process", "`ps -e` lists the running ones.")
    if status.get("Tgid", [str(pid)]) != [str(pid)]:
        raise CollectorError(
            f"--pid {pid}: is a thread of process {status['Tgid'][0]}",
            f"Give --pid {status['Tgid'][0]}: all threads of a process are followed.",
        )
    if os.geteuid() and status.get("Uid", [])[:2] != [str(os.getuid())] * 2:
        raise CollectorError(
            f"--pid {pid}: not permitted, it is another user's process",
            "Only root may follow processes of other users.",
        )


def _check_cgroup(path: Path) -> None:
    if not path.is_dir():
        raise CollectorError(
            f"--cgroup {path}: no such directory",
            "`cat /proc/PID/cgroup` names the cgroup of a process (the line that begins with 0::).",
        )
    if not (path / _CONTROLLERS).exists():
        raise CollectorError(
            f"--cgroup {path}: not a cgroup v2 directory",
            "Give a directory below the mount point of type cgroup2 (`findmnt -t cgroup2`); for "
            "version 1 use --pid.",
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise CollectorError(
            f"--cgroup {path}: not permitted", "Ask for read access, or use --pid."
        )


def follow_arguments(follow: Follow) -> list[str]:
    """Return the loader's arguments."""
    if follow.listen >= 0:
        numbers = {
            "listen": follow.listen,
            "lock": follow.lock,
            "ready": follow.ready,
            "idle": round(follow.idle * 1000),
        }
        return [f"--{name}={number}" for name, number in numbers.items()]
    what = ["--cgroup", follow.cgroup] if follow.cgroup else ["--pid", str(follow.pid)]
    if follow.duration:
        what += ["--duration", str(max(1, round(follow.duration * 1000)))]
    return what


def followed_command(follow: Follow) -> list[bytes]:
    """Return the arguments of the followed process; none for a cgroup or a socket."""
    if follow.cgroup or follow.listen >= 0:
        return []
    try:
        text = Path(f"/proc/{follow.pid}/cmdline").read_bytes()
    except OSError:
        return []
    return text.removesuffix(b"\0").split(b"\0") if text else []


def follow_notes(follow: Follow, running: int) -> list[str]:
    """Return the notes for readers: the recording may begin and end within the processes' lives."""
    if follow.listen >= 0:
        notes = ["Recorded by this node's recorder for the tasks that joined it."]
        if running:
            notes.append(f"{running} processes were still running when the recording ended.")
        return notes
    what = f"cgroup {follow.cgroup}" if follow.cgroup else f"process {follow.pid}"
    notes = [
        f"Followed {what} from outside: what was done before the recording began is not known."
    ]
    if running:
        notes.append(f"{running} processes were still running when the recording ended.")
    return notes
