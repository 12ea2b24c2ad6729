"""Data flow: which bytes of which file one task passes to another (docs/reference/flow.md)."""

from __future__ import annotations
