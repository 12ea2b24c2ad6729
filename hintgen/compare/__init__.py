"""Comparing runs: what changed (diff), what hints did (proof), how well rules fit (score)."""

from __future__ import annotations
