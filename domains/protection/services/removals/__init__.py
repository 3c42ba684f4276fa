"""Requests to data brokers to remove a person's data, and checks of the results."""
