"""The trace bundle: tables, manifest, reading, writing and losses.

tables, manifest  the raw facts
store, writer     reading and writing bundles
losses            the kinds of losses and how complete a recording is
spool             recorder output during a run, and its conversion
redact            removal of secrets from command lines
"""
