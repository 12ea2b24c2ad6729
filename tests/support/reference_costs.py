"""Cost of each placement, by the cost model of docs/patterns.md (pattern_reference.py)."""

from __future__ import annotations

from collections import Counter
from math import ceil, inf, nextafter

from tests.support.reference_flow import SeenFlow


class Costs(SeenFlow):
    """Bytes that tasks wait for and bytes that cross the network."""

    def numbers(self, file: int) -> tuple[float, int, float]:
        read = self.deciding(file)
        total = sum(self.readers[file][t]["unique_bytes"] for t in read)
        return self.files[file]["size_bytes"], len(read), total / len(read) if read else 0.0

    def default(self, file: int) -> tuple[float, float, int]:
        s, n, u = self.numbers(file)
        k = self.nodes
        return (max(u, n * u / k) if n else 0.0, (k - 1) / k * (s + n * u), 1)

    def cost(self, file: int, pattern: str) -> tuple[float, float, int]:
        """Return (waiting, network, copies) of a label's placement."""
        s, n, u = self.numbers(file)
        k = self.nodes
        if pattern in ("concurrently_shared", "stage_out"):
            return self.default(file)
        if pattern == "stage_in":
            return (0.0, 0.0, 1)
        if pattern == "scatter":
            return (0.0, s * (k - 1) / k, 1)
        if pattern in ("broadcast", "partly_shared"):
            together = self.together(file)
            tries = {min(k, n, max(min(2, together), ceil(together / d))) for d in (2, 3)}
            offers = [
                (max(u, far * u / r), (r - 1) * s + far * u, r) if r > 1 else self.default(file)
                for r, far in ((r, max(0, n - r * max(1, n / k))) for r in tries)
            ]
            return min(offers)
        if pattern == "gather":
            owned = [r["owned"] for r in self.owners(file).values()]
            if n == 0:
                return (0.0, 0.0, 1)
            if n == 1:
                return (0.0, s * (1 - max(1 / k, max(owned) / max(1, sum(owned)))), 1)
            return (max(u, n * u / min(k, len(owned))), (k - 1) / k * n * u, 1)
        if pattern == "pipeline":
            away = u * (1 - self.pipeline_home(file))
            return (away, away, 1)
        return (0.0, u * (1 - self.group_home(file, pattern)), 1)

    def together(self, file: int) -> int:
        spans = [(self.ready(t), self.tasks[t]["end_s"]) for t in self.deciding(file)]
        return max(sum(1 for a, b in spans if a <= at <= b) for at, _ in spans)

    def ready(self, task: int) -> float:
        """Return the time just after a task's last input was complete, at most its start."""
        complete = [-inf]
        for e in self.all_edges:
            if self.who[e["consumer"]] == task and not self.tasks[e["consumer"]]["engine"]:
                if self.tasks[e["producer"]]["engine"]:
                    complete.append(self.last_write[e["file"], e["producer"]])
                elif self.who[e["producer"]] != task:
                    complete.append(self.tasks[self.who[e["producer"]]]["end_s"])
        return min(self.tasks[task]["start_s"], nextafter(max(complete), inf))

    def pipeline_home(self, file: int) -> float:
        piped = {}
        for other, labels in self.out.labels.items():
            if "pipeline" in labels:
                (c,) = self.deciding(other)
                (p,) = self.owners(other)
                piped[other] = (p, c, self.readers[other][c]["unique_bytes"])
        p, c, _ = piped[file]
        into: Counter[int] = Counter()
        out: Counter[int] = Counter()
        for q, d, u in piped.values():
            if d == c:
                into[q] += u
            if q == p:
                out[d] += u
        share = [max(x.values()) / sum(x.values()) if sum(x.values()) else 1 for x in (into, out)]
        return min(share)

    def group_of(self, file: int, pattern: str) -> tuple[str, int, frozenset[int]]:
        (group,) = [g for g in self.out.groups if g[0] == pattern and file in g[2]]
        return group

    def group_home(self, file: int, pattern: str) -> float:
        """Return the largest share of the group's bytes that one partner writes or reads."""
        _, task, members = self.group_of(file, pattern)
        by: Counter[int] = Counter()
        total = 0
        for f in members:
            (c,) = self.deciding(f)
            u = self.readers[f][c]["unique_bytes"]
            total += u
            if pattern == "distribute":
                by[c] += u
            else:
                for e in self.edges:
                    if e["file"] == f and e["c"] == task:
                        by[e["p"]] += e["bytes"]
        return max(1 / self.nodes, min(1, max(by.values()) / total) if total else 0)

    def group_saving(self, file: int, pattern: str) -> tuple[float, float]:
        _, _, members = self.group_of(file, pattern)
        wait = net = 0.0
        for f in members:
            wait0, net0, _ = self.default(f)
            w, x, _ = self.cost(f, pattern)
            wait, net = wait + wait0 - w, net + net0 - x
        return wait, net
