"""Record the events of a request."""
