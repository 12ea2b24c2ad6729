"""One record's counters by their names."""

from __future__ import annotations

from typing import Any


class Counters:
    """Named access to one record's counters."""

    def __init__(
        self, row: Any, integers: dict[str, int], times: Any, floats: dict[str, int], prefix: str
    ) -> None:
        self.row, self.integers, self.values, self.floats = row, integers, times, floats
        self.prefix = prefix

    def get(self, name: str) -> int:
        k = self.integers.get(f"{self.prefix}_{name}")
        return 0 if k is None else int(self.row[k])

    def time(self, name: str) -> float:
        k = self.floats.get(f"{self.prefix}_F_{name}")
        return 0.0 if k is None else float(self.values[k])

    def volume(self, write: bool, *, stdio: bool) -> tuple[int, int, int, int]:
        """Operations, bytes, last byte, operations that began where the one before ended."""
        if self.prefix == "MPIIO":
            kinds = ("INDEP", "COLL", "SPLIT", "NB")
            word = "WRITES" if write else "READS"
            ops = sum(max(0, self.get(f"{kind}_{word}")) for kind in kinds)
            total = self.get("BYTES_WRITTEN" if write else "BYTES_READ")
            return ops, total, -1, -1
        ops = self.get("WRITES" if write else "READS")
        total = self.get("BYTES_WRITTEN" if write else "BYTES_READ")
        max_byte = self.get("MAX_BYTE_WRITTEN" if write else "MAX_BYTE_READ")
        if stdio:
            # with one seek at most, as many bytes as the last offset mean one pass from 0
            once = self.get("OPENS") <= 1 and self.get("SEEKS") <= 1 and total == max_byte + 1
            return ops, total, max_byte, ops if once else -1
        return ops, total, max_byte, self.get("CONSEC_WRITES" if write else "CONSEC_READS")

    def times(self, write: bool) -> tuple[float, float]:
        word = "WRITE" if write else "READ"
        return self.time(f"{word}_START_TIMESTAMP"), self.time(f"{word}_END_TIMESTAMP")

    def open_row(self, file: int, rank: int) -> dict[str, Any]:
        """Columns of an `opens` row; times in seconds from the log's start."""
        read, write = self.volume(False, stdio=False), self.volume(True, stdio=False)
        begun = [t for t in (self.times(False)[0], self.times(True)[0]) if t > 0]
        ended = max(self.times(False)[1], self.times(True)[1])
        consecutive = max(0, self.get("CONSEC_READS")) + max(0, self.get("CONSEC_WRITES"))
        small = sum(
            max(0, self.get(f"SIZE_{way}_{size}"))
            for way in ("READ", "WRITE")
            for size in ("0_100", "100_1K")
        )
        return {
            "file": file,
            "rank": rank,
            "open": self.time("OPEN_START_TIMESTAMP"),
            "close": self.time("CLOSE_END_TIMESTAMP"),
            "first": min(begun, default=0.0),
            "last": ended,
            "io": sum(self.time(f"{kind}_TIME") for kind in ("READ", "WRITE", "META")),
            "read_ops": max(0, read[0]),
            "read_bytes": max(0, read[1]),
            "write_ops": max(0, write[0]),
            "write_bytes": max(0, write[1]),
            "seq_ops": consecutive,
            "small_ops": small,
        }
