"""Recording with a library in every program: without root, nearly free, dynamic programs only.

collector     whether it can run here, and the trial of the C library
library       where the library is, and what it cannot record
record        a recording of a command
arena         the file that programs write to
jobs          jobs that a batch system starts for a run
hook/         in C: enter programs and their calls; record/: what is recorded
tag/          in C: set hints on new files; place/: ask where a task starts; job/: join a run
"""

from tracehint.collectors.preload.collector import PreloadCollector

__all__ = ["PreloadCollector"]
