"""The handlers of photos."""
