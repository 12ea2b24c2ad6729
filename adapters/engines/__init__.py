"""Workflow engines: one package or module per engine, and here what they share.

registry  what is known of each engine, one row each; adding an engine is its module and a row
graphs    reading an engine's graph or log (base: graph_base)
emitters  writing hints for an engine (base of each emitter)
run_logs  the logs that the engines of a run left behind
"""
