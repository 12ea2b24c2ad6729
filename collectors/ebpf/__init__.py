"""Recording with a BPF program in the kernel: complete, cheap, needs two capabilities.

collector     whether it can run here, and recording a command
follow        follow processes that run already
node          one recorder for all tasks of a user on a node
segments      join the bundles of one node's recorders
missed        tasks that found no recorder
bpf/, rec/    the BPF program and its loader, in C
"""

from tracehint.collectors.ebpf.collector import EbpfCollector

__all__ = ["EbpfCollector"]
