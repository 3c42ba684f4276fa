"""Put photos into gatherings: which photos belong together, and the statements that store it."""
