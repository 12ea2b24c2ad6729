"""An analysis as text, JSON or Parquet, on stdout or where -o says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tracehint.analyzer.execution.resources import silent
from tracehint.commands._output import cannot_write, put

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.execution.resources import Tell
    from tracehint.analyzer.model import Analysis, Options


@dataclass
class Output:
    """Where an analysis goes. Replaces what is there; raises UsageError with the remedy."""

    target: str | None
    options: Options
    threads: int = 1
    tell: Tell = silent
    cluster: str | None = None  # the text tells there what hints would save in seconds

    def ready(self, name: str, table: pa.Table) -> None:
        """A table is complete, although the analysis is not."""

    def write(self, analysis: Analysis) -> None:
        """Write what is not written yet."""
        raise NotImplementedError


class Json(Output):
    """One document."""

    def write(self, analysis: Analysis) -> None:
        put(self._pieces(analysis), self.target)

    def _pieces(self, analysis: Analysis) -> Iterator[bytes]:
        from tracehint.analyzer.output.json import write_json

        done = 0
        for piece in write_json(analysis, self.threads):
            done += len(piece)
            self.tell("writing", done >> 20, 0, "MiB")
            yield piece


@dataclass
class Parquet(Output):
    """One file per table in a directory, written by threads as the tables come; last run.json."""

    def __post_init__(self) -> None:
        from concurrent.futures import Future, ThreadPoolExecutor

        self._folder = Path(str(self.target))
        self._pool = ThreadPoolExecutor(self.threads)
        self._begun: dict[str, Future[None]] = {}

    def ready(self, name: str, table: pa.Table) -> None:
        where = self._folder / f"{name}.parquet"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self._folder, error) from None
        self._begun[name] = self._pool.submit(_table, table, where, self.options.ranges)

    def write(self, analysis: Analysis) -> None:
        import json

        for name, table in analysis.tables().items():
            if name not in self._begun:
                self.ready(name, table)
        text = json.dumps(analysis.run, indent=1, allow_nan=False)
        try:
            for begun in self._begun.values():
                begun.result()
            (self._folder / "run.json").write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise cannot_write(self._folder, error) from None


def _table(table: pa.Table, path: Path, ranges: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not ranges and "ranges" in table.schema.names:
        table = table.drop_columns(["ranges"])
    # Looking for repeated numbers costs more than compressing them, and the least and largest
    # of a few texts, which nobody searches by, as much as writing them.
    repeated = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    ordered = [f.name for f in table.schema if not pa.types.is_dictionary(f.type)]
    pq.write_table(
        table, path, compression="zstd", use_dictionary=repeated, write_statistics=ordered
    )


class Text(Output):
    """The summary for people."""

    def write(self, analysis: Analysis) -> None:
        import io

        if self.target in (None, "-"):
            self._print(analysis, sys.stdout)
            return
        text = io.StringIO()
        self._print(analysis, text)
        put([text.getvalue().encode("utf-8", "backslashreplace")], self.target)

    def _print(self, analysis: Analysis, stream: TextIO) -> None:
        from tracehint.commands._in_seconds import saved_by_pattern
        from tracehint.hintgen.summary.console import console_for
        from tracehint.hintgen.summary.summary import print_summary

        print_summary(analysis, console_for(stream))
        if self.cluster and (said := saved_by_pattern(analysis, self.cluster)):
            stream.write(f"\n{click.wrap_text(said, 78)}\n")


# --format -> who writes it
FORMS: dict[str, type[Output]] = {"text": Text, "json": Json, "parquet": Parquet}
