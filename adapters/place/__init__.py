"""Start a task on the node that holds its inputs (`tracehint place`, placed runs).

hosts         the host file: nodes, and how a command is started on one
allocation    the nodes of the batch job that this process is in
choose        the node for a task by its inputs; nodes that do not answer, slots in use
parts         the node for a task by its part of a plan
dispatch      start each task of a running workflow on its node
starter       runs in the place of a task and asks where it starts
"""
