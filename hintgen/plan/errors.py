"""The error of a strategy that cannot be tried; the others still can."""

from __future__ import annotations


class UnavailableError(Exception):
    """A strategy cannot be tried here; the text says why and what to do."""
