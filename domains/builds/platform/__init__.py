"""The parts of builds for the platform: admin, menu, panels, roles, processes, commands."""
