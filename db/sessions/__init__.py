"""Which statements change a database session, how to restore it, and how to cancel statements."""
