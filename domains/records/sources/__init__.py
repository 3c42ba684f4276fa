"""Where records are harvested from: formats of sources, and how their pages are read."""
