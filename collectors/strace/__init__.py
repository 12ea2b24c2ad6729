"""Recording with strace, and importing strace logs that people already have.

collector     whether it can run here, and recording a command
live          run a command under strace; drain: copies its output to the log
convert       the tables of a run that was recorded here
importer      a bundle of logs that others recorded
lexer         lines of a log to calls, arguments to values
calls         which handler each system call has; handlers/: what it does to the state
parse         the loop over the calls
state, model  what the kernel knew: names, descriptors, processes
access        reads and writes
finish        the tables at the end
"""

from tracehint.collectors.strace.collector import StraceCollector

__all__ = ["StraceCollector"]
