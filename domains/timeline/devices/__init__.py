"""The devices of a user: rename, merge and delete them."""
