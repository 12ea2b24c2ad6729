"""Recording with a BPF program in the kernel: complete, cheap, needs two capabilities."""

from tracehint.collectors.ebpf.collector import EbpfCollector

__all__ = ["EbpfCollector"]
