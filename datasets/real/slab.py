"""slab.py FILE BYTES: each MPI rank writes its own slab of one file, by MPI-IO. Needs mpi4py."""

from __future__ import annotations

import sys

from mpi4py import MPI


def main() -> None:
    path, size = sys.argv[1], int(sys.argv[2])
    world = MPI.COMM_WORLD
    data = bytes([world.rank + 1]) * size
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    file.Write_at(world.rank * size, data)
    file.Close()


if __name__ == "__main__":
    main()
