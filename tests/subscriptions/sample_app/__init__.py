"""The sample domain as an installed app, for workers in processes of their own."""
