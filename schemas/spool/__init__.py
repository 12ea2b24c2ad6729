"""Convert recorder output (eBPF's spool, the preload library's arena) to bundle tables."""
