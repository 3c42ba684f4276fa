"""A package of the project's own that has a common name."""

SHORTEST = 3
