"""The probe: costs of a store and its nodes, measured on the nodes.

probe         the steps of the measurement, and the agents on the nodes
agent         the program that runs on each node
jobs          how fast a batch system starts jobs
measurements  records of what was measured
derive        parameters of a cluster file from the measurements
"""
