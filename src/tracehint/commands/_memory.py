"""How a process handles memory that reads a whole run."""

from __future__ import annotations


def for_a_run(*, sql: bool = False, keep: bool = True) -> None:
    """Memory that was given is kept, and nobody looks for garbage: what a run is held in are few
    large arrays and millions of live objects, none of them in cycles that grow.

    For commands, and before numpy is imported. `sql`: DuckDB is asked about the run.
    Without `keep` memory goes back as it is freed: where what follows are many small texts.
    """
    import gc

    from tracehint.analyzer.memory import keep_memory
    from tracehint.schemas.arrow import skip_pandas

    if keep:
        keep_memory(sql=sql)
    skip_pandas()
    gc.disable()
