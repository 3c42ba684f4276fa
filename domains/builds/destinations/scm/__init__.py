"""Commit statuses at the hosts of source repositories, with one module for each kind of API."""
