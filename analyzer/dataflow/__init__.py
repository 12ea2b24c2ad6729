"""Which task handed which bytes of which file to which task (docs/reference/flow.md)."""

from __future__ import annotations
