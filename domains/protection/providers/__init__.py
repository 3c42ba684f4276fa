"""What is asked of others over HTTP: a file for each provider, and `ask`, which keeps to limits."""
