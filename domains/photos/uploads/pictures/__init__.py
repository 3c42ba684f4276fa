"""The picture of a photo: decoded in a process of its own, stored, and served."""
