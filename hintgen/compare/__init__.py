"""Comparison of runs: changes (diff), effect of hints (proof), accuracy of rules (score)."""

from __future__ import annotations
