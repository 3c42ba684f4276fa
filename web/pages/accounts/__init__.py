"""The pages of an account: sign in, change the password, set up a second factor, delete it."""
