"""The points of a timeline: their definition, and reading them by days, by times and as files."""
