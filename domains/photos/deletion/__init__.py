"""Delete photos, with all that is stored of them."""
