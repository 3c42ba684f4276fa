"""Benchmarks against other queues, in one run on one machine; `make bench` runs them."""
