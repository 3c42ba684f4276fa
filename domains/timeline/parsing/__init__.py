"""What the formats share: unpacking, streaming, checks of values, and counts."""
