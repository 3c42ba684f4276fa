"""Embeddings: vectors of texts. Texts with similar meanings have vectors near each other."""
