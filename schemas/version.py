"""The format version of trace bundles: raised when the meaning of something written changes."""

FORMAT = "tracehint.bundle/1"
