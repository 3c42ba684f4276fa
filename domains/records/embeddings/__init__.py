"""Embeddings: texts as vectors, so that texts of like meaning are near each other."""
