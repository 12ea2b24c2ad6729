"""Darshan: logs that a site keeps anyway as one run, or a recording with its runtime."""

from tracehint.collectors.darshan.collector import DarshanCollector

__all__ = ["DarshanCollector"]
