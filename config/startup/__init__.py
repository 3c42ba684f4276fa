"""Before a process runs: set up the installation, check the settings, start the engines."""
