"""The pages of a customer, one file for each."""
