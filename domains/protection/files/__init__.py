"""Private files of protection: reports and recordings, stored under random names."""
