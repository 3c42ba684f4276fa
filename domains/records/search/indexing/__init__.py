"""The indexes of published records. To add an index, add a module with a subclass of
`IndexBackend`."""
