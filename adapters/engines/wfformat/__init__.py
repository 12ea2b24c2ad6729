"""WfFormat, the instances of WfCommons, as a graph of any size."""
