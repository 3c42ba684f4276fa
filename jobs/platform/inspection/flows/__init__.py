"""A flow as pages and the API show it: its jobs in layers, what took the time, and its state."""
