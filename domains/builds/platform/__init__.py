"""What the platform asks of builds: admin, menu, panels, roles, processes, commands."""
