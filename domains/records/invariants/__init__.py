"""What must be true of depositions, records and their indexes."""
