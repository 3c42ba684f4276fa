"""What `make run` imports for a newcomer: a walk of somebody, and a month that nobody lived."""
