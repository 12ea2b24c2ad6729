"""The trace bundle: tables, manifest, reading, writing, what a loss means.

tables, manifest  the raw facts
store, writer     reading and writing bundles
losses            the kinds of losses and how complete a recording is
spool             what recorders write while they run, and its conversion
redact            secrets out of command lines
"""
