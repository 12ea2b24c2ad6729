"""summarize.py OUT DAILY...: mean temperature of every day over all stations."""

import sys

target, sources = sys.argv[1], sys.argv[2:]
sums: dict[int, float] = {}
for name in sources:
    with open(name) as file:
        for line in file:
            _, day, mean, _, _ = line.split(",")
            sums[int(day)] = sums.get(int(day), 0.0) + float(mean)
with open(target, "w") as out:
    for number, total in sorted(sums.items()):
        out.write(f"{number},{total / len(sources):.4f}\n")
