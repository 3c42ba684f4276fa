"""Delete photos with all data that is stored about them."""
