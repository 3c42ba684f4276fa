"""Requests to data brokers that they remove a person's data, and whether they have done so."""
