"""Predict a run on a cluster: workload, cluster, placement, and the engine that simulates them."""
