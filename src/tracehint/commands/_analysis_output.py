"""An analysis as text, JSON or Parquet, on stdout or where -o says."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.commands._output import cannot_write, put

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.execution.resources import Tell
    from tracehint.analyzer.model import Analysis


def write_analysis(
    analysis: Analysis, form: str, output: str | None, threads: int, tell: Tell
) -> None:
    """Write in one of `FORMS`, replacing what is there. Raises UsageError with the remedy."""
    FORMS[form](analysis, output, threads, tell)


def _json(analysis: Analysis, output: str | None, threads: int, tell: Tell) -> None:
    from tracehint.analyzer.output import write_json

    def pieces() -> Iterator[bytes]:
        done = 0
        for piece in write_json(analysis, threads):
            done += len(piece)
            tell("writing", done >> 20, 0, "MiB")
            yield piece

    put(pieces(), output)


def _parquet(analysis: Analysis, output: str | None, threads: int, _tell: Tell) -> None:
    """One file per table, and run.json, in a directory."""
    import json
    from concurrent.futures import ThreadPoolExecutor

    folder = Path(str(output))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tables = analysis.tables()
        largest = sorted(tables, key=lambda name: -tables[name].nbytes)
        ranges = analysis.options.ranges
        with ThreadPoolExecutor(threads) as pool:
            for done in [
                pool.submit(_table, tables[name], folder / f"{name}.parquet", ranges)
                for name in largest
            ]:
                done.result()
        text = json.dumps(analysis.run, indent=1, allow_nan=False)
        (folder / "run.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(folder, error) from None


def _table(table: pa.Table, path: Path, ranges: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not ranges and "ranges" in table.schema.names:
        table = table.drop_columns(["ranges"])
    # Looking for repeated numbers costs more than compressing them.
    repeated = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    pq.write_table(table, path, compression="zstd", use_dictionary=repeated)


def _text(analysis: Analysis, output: str | None, _threads: int, _tell: Tell) -> None:
    import io

    from tracehint.analyzer.summary import console_for, print_summary

    if output in (None, "-"):
        print_summary(analysis, console_for(sys.stdout))
        return
    text = io.StringIO()
    print_summary(analysis, console_for(text))
    put([text.getvalue().encode("utf-8", "backslashreplace")], output)


# --format -> who writes it
FORMS: dict[str, Callable[[Analysis, str | None, int, Tell], None]] = {
    "text": _text,
    "json": _json,
    "parquet": _parquet,
}
