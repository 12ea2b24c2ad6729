# SPDX-License-Identifier: Apache-2.0
"""Spack recipe. UNTESTED: no Spack was at hand.

Put it into a repository of your own as packages/tracehint/package.py and install a checkout:
    spack develop --path /where/the/checkout/is tracehint@0.1.0 && spack install
Without the eBPF recorder, which needs static libraries: a node that allows eBPF takes the wheel
(make wheel). Versions as in pyproject.toml; a test compares them.
"""

from spack.package import depends_on, license, version
from spack_repo.builtin.build_systems.python import PythonPackage


class Tracehint(PythonPackage):
    """Find the storage hints of a scientific workflow by watching one run of it."""

    license("Apache-2.0")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.10:", type="build")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-duckdb@1.1:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-networkx@3.2:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-pyarrow@15:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))

    depends_on("strace@5.6:", type="run")
    depends_on("metis@5.1:", type="run")
    depends_on("graphviz", type="run")

    def config_settings(self, spec, prefix):
        return {"cmake.define.WITH_BPF": "OFF"}
