"""What recorders write during a run (eBPF's spool, preload's arena) -> bundle tables."""
