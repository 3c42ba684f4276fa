"""The parts of job and queue pages that are not fields of the row."""
