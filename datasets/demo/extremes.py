"""extremes.py SEASON OUT: the ten warmest and coldest values of one season."""

import sys
from array import array

source, target = sys.argv[1:]
with open(source, "rb", buffering=0) as file:
    values = sorted(array("f", file.read()))
with open(target, "w") as out:
    for value in values[:10] + values[-10:]:
        out.write(f"{source} {value:.3f}\n")
