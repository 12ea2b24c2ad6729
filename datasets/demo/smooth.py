"""smooth.py IN STATION FIELD DAILY: running mean of one station.

Writes the smoothed values into the station's own region of FIELD, which all
stations share, and a table of daily means to DAILY.
"""

import os
import sys
from array import array

source, station, field, daily = sys.argv[1:]
with open(source, "rb", buffering=0) as file:
    values = array("f", file.read())
smooth = array("f")
total = 0.0
for k, value in enumerate(values):
    total += value - (values[k - 24] if k >= 24 else 0.0)
    smooth.append(total / min(k + 1, 24))
data = smooth.tobytes()
descriptor = os.open(field, os.O_WRONLY | os.O_CREAT, 0o644)
os.pwrite(descriptor, data, int(station) * len(data))
os.close(descriptor)
with open(daily, "w") as out:
    for day in range(len(smooth) // 24):
        part = smooth[day * 24 : day * 24 + 24]
        out.write(f"{station},{day},{sum(part) / 24:.4f},{min(part):.4f},{max(part):.4f}\n")
