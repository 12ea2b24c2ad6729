"""The coverage cases on stock Debian kernels, booted in QEMU. See docs/collectors/kernels.md."""
