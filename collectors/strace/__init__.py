"""Recording with strace, and importing strace logs that people already have."""

from tracehint.collectors.strace.collector import StraceCollector

__all__ = ["StraceCollector"]
