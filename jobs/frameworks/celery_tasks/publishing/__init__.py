"""Create the jobs of single calls, and of a canvas."""
