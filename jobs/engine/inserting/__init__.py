"""Insert the jobs of events and of requests."""
