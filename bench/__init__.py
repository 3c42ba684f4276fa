"""How fast it is: measured beside its peers, in one run on one machine. `make bench` runs it."""
