"""What pages show of one job, one event or one group of failures."""
