"""Record with strace, and import existing strace logs.

collector     the availability check, and recording a command
live          run a command under strace; drain: copies its output to the log
convert       the tables of a run recorded on this machine
importer      a bundle from logs recorded elsewhere
lexer         log lines to calls, call arguments to values
calls         the handler of each system call; handlers/: their effects on the state
parse         the loop over the calls
state, model  the reconstructed kernel state: names, descriptors, processes
access        reads and writes
finish        the final tables
"""

from tracehint.collectors.strace.collector import StraceCollector

__all__ = ["StraceCollector"]
