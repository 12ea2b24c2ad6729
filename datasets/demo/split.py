"""split.py FIELD STATIONS OUT...: cut the field of all stations into one file per season."""

import sys
from array import array

field, stations, outputs = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
with open(field, "rb", buffering=0) as file:
    values = array("f", file.read())
samples = len(values) // stations
part = samples // len(outputs)
for season, name in enumerate(outputs):
    with open(name, "wb") as out:
        for station in range(stations):
            start = station * samples + season * part
            values[start : start + part].tofile(out)
