"""Where events of the build service come from: a backend's notification log, and the bus."""
