"""The benchmark of metadata over sites: real registries hold what each strategy says; the pages."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from scripts.bench.sites import data_page
from scripts.bench.sites.bench_sites import sites
from scripts.bench.sites.page import order, page
from scripts.bench.sites.registries import connect, registries
from scripts.bench.sites.replay import Replay
from scripts.bench.sites.shapes import near_pipeline

from tracehint.analyzer.predict.metadata.model import STRATEGIES
from tracehint.analyzer.predict.metadata.request import homes


async def entries(strategy: str, folder: Path) -> list[int]:
    """How many entries each registry has after a replay."""
    work, at = near_pipeline(20), sites(0.002, 0.002)
    async with registries(folder, len(at.names)) as sockets:
        await Replay(work, at, strategy, 0).run(sockets)
        found = []
        for socket in sockets:
            link = await connect(socket, 0)
            (answer,) = await link.ask(0, [b"DBSIZE"])
            assert isinstance(answer, bytes)
            found.append(int(answer))
            link.writer.close()
    return found


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_registries_hold_what_the_strategy_says(tmp_path: Path, strategy: str) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("not installed: redis-server")
    found = asyncio.run(entries(strategy, tmp_path))
    work = near_pipeline(20)
    total, home = len(work.paths), homes(work.paths, 4)
    if strategy == "centralised":
        assert found == [total, 0, 0, 0]
    elif strategy == "decentralised":
        assert found == [(home == site).sum() for site in range(4)]
    elif strategy == "decentralised-replica":
        assert min(found) > total // 4 and sum(found) > total  # own ones, and those of the hash
    else:
        assert min(found) >= total // 4  # at least what its own tasks entered


def row(strategy: str, measured: float, predicted: float) -> dict[str, Any]:
    return {"shape": "x", "operations": 100, "strategy": strategy, "measured": measured,
            "predicted": predicted, "load": 0.5}  # fmt: skip  # a table


def test_the_page_counts_pairs_in_the_right_order() -> None:
    rows = [row("centralised", 10, 9), row("replicated", 5, 9.5), row("decentralised", 5.1, 4)]
    assert order(rows) == (1, 2)  # 5 and 5.1 are alike; 10 against 5 is predicted the wrong way
    text = page(rows, (0.002, 0.002))
    assert "worst 90.0%" in text and "| x | 100 |" in text


def test_the_page_of_data_tells_shares_and_whether_outputs_differ() -> None:
    def made(column: str, size: float, outputs: int) -> dict[str, Any]:
        return {"title": "M", "column": column, "number": 0, "seconds": 2.0, "bytes": size,
                "predicted_seconds": 2.0, "predicted_bytes": size, "outputs": outputs,
                "others": 0.1}  # fmt: skip  # a table

    columns = ["default", "planned"]
    text = data_page.page([made("default", 4e6, 7), made("planned", 1e6, 7)], columns)
    assert "0.25 of default" in text and "identical" in text
    assert "DIFFERENT" in data_page.page(
        [made("default", 4e6, 7), made("planned", 1e6, 8)], columns
    )
