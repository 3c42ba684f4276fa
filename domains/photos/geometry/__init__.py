"""Points, distances and grid cells on the earth."""
