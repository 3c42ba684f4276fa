"""Store uploaded photos: decode the picture, write its files, insert its row."""
