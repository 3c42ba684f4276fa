"""The admin of records, depositions and sources."""
