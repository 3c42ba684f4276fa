"""Checks of the body and the values of a request, and requests that wait for a change."""
