"""What is known of all event types: names of families, samples, an AsyncAPI document."""
