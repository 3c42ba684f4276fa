"""Benchmarks of events and jobs; each is a module with TITLE, run and targets."""
