"""Gain of placements on real workflows: `make bench-gain`, or this module with --help.

Instances of WfInstances are replayed on a real MooseFS: tasks read and write real bytes and sleep
instead of computing. One `Placement` per column is both predicted and applied.
"""
