"""Recorder based on a library preloaded into dynamic programs: no root, low overhead.

collector     availability check, including a trial of the C library
library       path of the library, its blind spots, and classes of programs
record        recording of a command or a job
arena         the file that programs write to
jobs          jobs that a batch system starts for a run
hook/         in C: load into programs and intercept calls; record/: record the calls
tag/          in C: set hints on new files; place/: choose a task's node; job/: record a job
"""

from tracehint.collectors.preload.collector import PreloadCollector

__all__ = ["PreloadCollector"]
