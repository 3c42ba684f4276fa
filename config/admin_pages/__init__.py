"""What all pages of the admin have: their looks, sidebar, policy and budget."""
