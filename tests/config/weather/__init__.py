"""A whole domain, for test_new_domain.py: it is copied into domains/ of a copy of the project."""
