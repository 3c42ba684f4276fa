"""Group similar failures by handler, error class, frame and message."""
