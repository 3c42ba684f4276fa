"""What lists of the admin share: filters, pages, and actions on several rows."""
