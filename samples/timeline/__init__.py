"""The samples that `make run` imports: a real walk, and a generated month."""
