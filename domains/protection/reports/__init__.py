"""Reports: an account's numbers of some days as a PDF."""
