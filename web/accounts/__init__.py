"""Personal data of users, and the deletion of accounts."""
