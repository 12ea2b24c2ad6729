"""Recording a command: one package per collector, and here what they share.

registry      the collectors in the order of `auto`; adding one is a line
base          what each offers: whether it can run here, what it misses, recording
begin, run    the beginning of a recording, and running the command
join, clocks  recordings of several hosts as one, their clocks aligned
"""
