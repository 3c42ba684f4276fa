"""Benchmarks of the domains; each is a module with TITLE, run and targets."""
