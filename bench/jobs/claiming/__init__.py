"""Benchmarks of claims."""
