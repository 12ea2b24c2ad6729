"""What hints bring on a real store: `make bench-hints`, or `python -m scripts.bench.hints --help`.

One file per pattern (`pipeline.py`, `broadcast.py`, ...) holds its rows; `rows.py` registers them.
"""
