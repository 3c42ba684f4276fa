"""Accounts of users: what is stored of a person, and its deletion."""
