"""File versions and edges -> labels with evidence, confidence and a primary by the cost model.

The definitions are in docs/patterns.md. All data that grows with the run is held in numpy arrays,
mostly sorted integers. Facts that depend on the rows of one file only are computed per partition
of whole files by a pure function (`facts.find`); the other steps are small or need all files:

    run_labels  entry point: tasks with merged attempts, labels of the run, copies on the edges
    partitions  Arrow tables cut into partitions of arrays
    rows        column records that the steps exchange
    prepare     writers and readers that count (no engines, attempts merged, header reads aside)
    coverage    readers per byte (m), shared header, overlap, regions, concurrency
    facts       facts of one partition, and the labels that depend on one file only
    groups      reduce and distribute groups, chains of pipeline files, cycles of tasks
    cost        placements and the bytes that they move
    choice      the cheapest placement, primary label and runner-up
    confidence  factors of a label's confidence
    evidence    the numbers behind each label, as JSON text
"""
