"""Plan a whole run: draft placements, simulate them on a cluster, improve the best and choose."""
