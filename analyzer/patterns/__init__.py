"""File versions and edges -> labels with evidence, confidence and a primary by the cost model.

The definitions are in docs/patterns.md. Everything that grows with the run is numpy on sorted
arrays of integers. What a file's own rows decide is computed in partitions of whole files, by a
function from arrays to arrays (`facts.find`); the rest is small or needs all files:

    attempts  the tasks, attempts of one task put together
    partitions  Arrow tables as arrays
    prepare   writers and readers that count (no engines, retries merged, peeks aside)
    ranges    bytes per reader: m, shared header, overlap of writers
    times     how many read or wrote at the same time
    regions   the shape of scatter and gather regions
    labels    which labels hold for a file by itself
    facts     all of these, for one partition
    cycles    tasks that feed each other both ways
    groups    reduce and distribute
    chains    position of a pipeline file in its chain
    cost      placements and what they move
    choice    the cheapest placement, primary and runner-up
    confidence, numbers, evidence, edges: the rest of a label, and its copies on the edges
"""
