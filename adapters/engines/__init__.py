"""Workflow engines: one package or module per engine, and shared modules.

registry  facts about each engine, one row each; a new engine needs a module and a row
graphs    choose the reader of an engine's graph or log (base: graph_base)
emitters  request and result of the emitters, which write hints for an engine
run_logs  find the logs that the engines of a run wrote
"""
