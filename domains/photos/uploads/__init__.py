"""Store uploaded photos: read the picture, write its files, insert its row."""
