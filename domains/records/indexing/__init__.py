"""The indexes of published records, one in a file; a new one is a new module with a subclass of
`IndexBackend`."""
