"""All event types together: names of families, samples, an AsyncAPI document."""
