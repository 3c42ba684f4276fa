"""The kinds of sources that records are harvested from, one in a file; a new one is a new module
with a subclass of `SourceFormat`."""
