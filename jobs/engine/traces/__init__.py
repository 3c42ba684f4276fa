"""Spans of jobs, if tracing is on."""
