"""What curators do with sources: make, change, try, pause and pull them, and see how they fare."""
