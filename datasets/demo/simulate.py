"""simulate.py RECORDS STATIONS SAMPLES: one year of made-up hourly-and-finer temperatures.

Writes one region of SAMPLES float32 values per station, one after the other.
The values follow from a fixed formula, so every run makes the same bytes.
"""

import sys
from array import array
from math import pi, sin

records, stations, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
year = [10.0 * sin(2 * pi * k / samples) for k in range(samples)]
state = 12345
with open(records, "wb") as out:
    for station in range(stations):
        values = array("f")
        for k in range(samples):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            values.append(8.0 + station + year[k] + (state >> 16) % 64 / 16.0)
        values.tofile(out)
