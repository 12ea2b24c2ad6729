"""What sbatch and srun are told about the node of a part.

Names passed the allow-list of host files, so that they can stand in a command line as they are.
"""

from __future__ import annotations

from tracehint.adapters.place.hosts import Host


def for_host(host: Host) -> list[str]:
    """A feature where the host file has one (any node that has it will do), else the node."""
    if host.feature:
        return [f"--constraint={host.feature}"]
    return [f"--nodelist={host.name}"]
