"""The side effects of photos: one file each."""
