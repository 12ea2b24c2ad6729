"""The probe: what a store and its nodes cost, measured from the nodes themselves.

probe         the measurement as a whole, and the agents on the nodes
agent         what runs on each node
jobs          how a batch system starts jobs
measurements  what was measured, as records
derive        the numbers of a cluster file from the measurements
"""
