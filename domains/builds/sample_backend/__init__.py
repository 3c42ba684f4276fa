"""A small server with the notification log protocol of a build service, for trials and tests.

It needs no database and only the standard library.
"""
