"""All event types together: names of families, and samples."""
