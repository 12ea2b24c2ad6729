"""Drawings of a run: the file/task graph and the report page."""

from __future__ import annotations
