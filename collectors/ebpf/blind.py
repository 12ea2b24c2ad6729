"""What this collector cannot see, and where its loader lies."""

from __future__ import annotations

from pathlib import Path

LOADER = Path(__file__).parent / "bin" / "tracehint-rec"
BLIND: tuple[str, ...] = ()
