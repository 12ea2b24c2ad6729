"""Recording a command: one package per collector, and the code that they share.

registry      the collectors in the order of `auto`; adding one is a line
base          interface of a collector: availability, blind spots, recording
begin, run    start of a recording, and running the command
join, clocks  joining recordings of several hosts, with aligned clocks
"""
