"""The version of the spool's layout: TH_SPOOL_VERSION of collectors/ebpf/layout.h. Apart from the
layout, so that a recording can ask for it before it has loaded NumPy."""

VERSION = 4
