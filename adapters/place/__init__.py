"""Start of a task on the node that stores its inputs (`tracehint place`, placed runs).

hosts         the host file: nodes, and the command line that starts a command on one
allocation    the nodes of the batch job of this process
choose        a task's node by its inputs; unreachable nodes, slots in use
parts         a task's node by its part of a plan
dispatch      start each task of a running workflow on its node
starter       runs in place of a task and requests its node
"""
