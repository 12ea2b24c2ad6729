"""Recording with bpftrace, where nothing else is allowed.

collector     whether it can run here
record        a recording: attach, run, translate the lines to calls
announce      announces the process to follow, then becomes the command
"""

from tracehint.collectors.bpftrace.collector import BpftraceCollector

__all__ = ["BpftraceCollector"]
