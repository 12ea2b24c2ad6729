"""calibrate.py RECORDS TABLE STATION SAMPLES OUT: correct the readings of one station.

Reads the station's own region of RECORDS and the whole of TABLE.
"""

import os
import sys
from array import array

records, table, station, samples, target = sys.argv[1:]
length = int(samples) * 4
descriptor = os.open(records, os.O_RDONLY)
raw = array("f", os.pread(descriptor, length, int(station) * length))
os.close(descriptor)
with open(table, "rb", buffering=0) as source:
    correction = array("f", source.read())
entries = len(correction)
with open(target, "wb") as out:
    array("f", (v + correction[int(v * 100) % entries] for v in raw)).tofile(out)
