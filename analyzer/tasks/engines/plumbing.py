"""Shells between a driver and a pool of workers: a batch system's or provider's job script.

What else they start (getconf, seq, kill) sets the pool up; it is no task.
"""

from __future__ import annotations

from tracehint.analyzer.tasks.model import SHELL, Command, Engine


def _no(_command: Command) -> bool:
    return False


ENGINE = Engine(name="plumbing", rank=SHELL, matches=_no, is_job=_no)
