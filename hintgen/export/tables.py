"""The tables of the analysis as Parquet or Arrow IPC files, and `run.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.hintgen.inputs import Input


def write(run: Input, target: Path, name: str) -> None:
    """Write one file per table of analyzer/model.py, and `run.json`."""
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    for table_name, table in run.analysis.tables().items():
        path = target / f"{table_name}.{name}"
        try:
            if name == "parquet":
                pq.write_table(table, path, compression="zstd")
            else:
                feather.write_feather(table, path, compression="zstd")
        except pa.ArrowException as error:
            raise OSError(0, str(error)) from None
    (target / "run.json").write_text(json.dumps(run.analysis.run, indent=1) + "\n")
