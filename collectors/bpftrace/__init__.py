"""Recording with bpftrace, where nothing else is allowed."""

from tracehint.collectors.bpftrace.collector import BpftraceCollector

__all__ = ["BpftraceCollector"]
