"""What several domains do together, by events alone."""
