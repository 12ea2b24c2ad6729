"""Recording with a BPF program in the kernel: complete, cheap, needs two capabilities.

collector     availability, and recording a command
follow        following running processes
node          one recorder for all tasks of a user on a node
segments      joining the bundles of one node's recorders
missed        tasks that found no recorder
bpf/, rec/    the BPF program and its loader, in C
"""

from tracehint.collectors.ebpf.collector import EbpfCollector

__all__ = ["EbpfCollector"]
