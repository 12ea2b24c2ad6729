"""What works on new machines: `make reach`."""
