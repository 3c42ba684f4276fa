"""Failures that are alike are one group: by handler, class of the error, frame and message."""
